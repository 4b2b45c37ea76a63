"""The command line: one file a verb. Data goes to stdout, progress and warnings to stderr."""

import sys


def main() -> None:
    """Run the command line on the arguments of this process and exit with its code."""
    try:
        from tunewise.cli.app import app  # so that importing this room loads neither click nor rich
    except KeyboardInterrupt:  # before there is a command line that could tell
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None

    app(prog_name="tunewise")
