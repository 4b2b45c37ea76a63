"""`tunewise generate`: a model as code that stands on its own."""

from pathlib import Path

import click

from tunewise import models
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Screen, example, json_option, one_line, pass_screen
from tunewise.codegen import LANGUAGES
from tunewise.codegen import generate as source_of
from tunewise.codegen.helion import helion_source
from tunewise.errors import InvalidModel
from tunewise.models.whole import write_whole
from tunewise.report.drawing import picture

SVG = "svg"  # drawn by the report's own hand
HELION = "helion"  # the one that has to know the kernel's arguments
_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
_STDOUT = Path("-")


@click.command(
    epilog=example(
        "tunewise collect isin --log-uniform n=10:10000,m=2:100,span=10:1000 --num-problems 12",
        "tunewise store export isin.jsonl",
        "tunewise train isin.jsonl --learner tree --out isin.json",
        "tunewise generate isin.json --out isin_heuristic.py",
        "tunewise generate isin.json --lang c",
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--lang",
    type=click.Choice([*LANGUAGES, HELION, SVG]),
    default="python",
    show_default=True,
    help="The language, or the format.",
)
@click.option("--out", type=_FILE, default=_STDOUT, help="The file to write, whole or not at all; by default stdout.")
@click.option(
    "--kernel", metavar="NAME", help="For helion: the kernel; by default the one the decision is named after."
)
@click.option(
    "--feature",
    "features",
    metavar="NAME=PLACE",
    multiple=True,
    help="For helion: where a feature is in the arguments, such as m=args[0].shape[0].",
)
@json_option
@pass_screen
def generate(
    screen: Screen, model: Path, lang: str, out: Path, kernel: str | None, features: tuple[str, ...], as_json: bool
) -> None:
    """Write a learned model as code.

    MODEL is a file that `tunewise train` wrote. The code imports nothing of tunewise: a Python module with `choose` and
    `rank`, a header for C and C++, a class for PyTorch's AutoHeuristic, a file for Helion's aot_kernel, or a drawing of
    the tree in DOT or SVG.
    """
    is_shown = out == _STDOUT
    check_outputs({"--out": None if is_shown else out}, [model])
    learned = models.load(model)
    if lang != HELION and (kernel is not None or features):
        raise click.UsageError(f"--kernel and --feature are for --lang helion, not {lang}")
    if lang == HELION:
        text = helion_source(learned, _places(features), kernel=kernel)
    else:
        text = _drawn(learned) if lang == SVG else source_of(learned, lang)
    if not is_shown:
        write_whole(out, text.encode())
    if as_json:
        document = {
            "model": str(model),
            "decision": learned.card.decision,
            "language": lang,
            "bytes": len(text.encode()),
        }
        screen.json({**document, "file": None if is_shown else str(out), "source": text if is_shown else None})
    elif is_shown:
        click.echo(text, nl=False)
    else:
        screen.say(f"{out}: {one_line(learned.card.decision)} in {lang}, {len(text.splitlines())} lines")


def _places(features: tuple[str, ...]) -> dict[str, str]:
    """Return where features are, from NAME=PLACE; a name may hold an equals sign, a place does not."""
    pairs = [feature.rpartition("=") for feature in features]
    for (name, _, place), feature in zip(pairs, features, strict=True):
        if not name or not place:
            raise click.BadParameter(
                f"{feature!r} is not NAME=PLACE, such as m=args[0].shape[0]", param_hint="--feature"
            )
    return {name: place for name, _, place in pairs}


def _drawn(model: models.Model) -> str:
    text = picture(model)
    if text is None:
        raise InvalidModel(
            f"{model.card.decision}: a model of several trees cannot be drawn; use --lang dot, or a tree"
        )
    return text
