"""The command line: one file a verb. Data goes to stdout, progress and warnings to stderr."""


def main() -> None:
    """Run the command line on the arguments of this process and exit with its code."""
    from tunewise.cli.app import app  # so that importing this room loads neither click nor rich

    app(prog_name="tunewise")
