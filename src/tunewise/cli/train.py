"""`tunewise train`: a heuristic from measurements."""

from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise import models
from tunewise.cli.data_files import Request, data_options, gather
from tunewise.cli.outputs import check_outputs
from tunewise.cli.problems import Pairs
from tunewise.cli.screen import Amount, Screen, count, example, json_option, one_line, pass_screen
from tunewise.codegen import dot_source
from tunewise.errors import MissingPart
from tunewise.models.whole import write_whole
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.options import Epoch
    from tunewise.models import Model

_FILE = click.Path(path_type=Path, dir_okay=False)
_LEARNERS = ("auto", "tree", "regression", "ranker", "gbdt", "net")
_OF_NETS = ("epochs", "batch_size", "learning_rate")
_LINES = 4  # about how many a run of training writes


@click.command(
    epilog=example(
        "tunewise collect sort --log-uniform n=16:4096 --one-of dtype=int64,order=random:sorted --num-problems 12",
        "tunewise train --decision sort --out sort.json",
    )
)
@data_options
@click.option("--out", required=True, type=_FILE, help="The model file to write, whole or not at all.")
@click.option("--name", help="What the model's decision is called, instead of the name in the data.")
@click.option("--learner", type=click.Choice(_LEARNERS), default="auto", show_default=True, help="What kind of model.")
@click.option("--portfolio", type=click.IntRange(min=1), help="At most so many choices in a tree.")
@click.option("--ranking", type=click.IntRange(min=1), help="Rank at most so many choices for a problem.")
@click.option("--fence", type=Pairs(), help="Facts that must be equal, such as hardware.kind=cpu; else the data's own.")
@click.option("--no-fence", is_flag=True, help="Let the model answer on every device.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Equal seeds learn alike.")
@click.option("--epochs", type=click.IntRange(min=1), help="Show a net all rows at most so many times.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Show a net so many rows at a time.")
@click.option("--learning-rate", type=Amount(min=0, max=1, min_open=True), help="How far a net goes at a time.")
@click.option("--save-dot", type=_FILE, help="Draw the tree into this file, in DOT.")
@json_option
@pass_screen
def train(
    screen: Screen,
    /,
    request: Request,
    out: Path,
    learner: str,
    save_dot: Path | None,
    no_fence: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn a heuristic from measurements.

    DATA are files of measurements; without any it is what the store remembers of --decision. Shown is the regret (time
    of what was chosen / best time) on problems that were held out while the model learned.
    """
    vain = [f"--{name.replace('_', '-')}" for name in _OF_NETS if options[name] is not None]
    if vain and learner != "net":
        raise click.UsageError(f"{vain[0]} is for nets: give --learner net too, or leave it out.")
    if save_dot is not None and learner == "net":
        raise click.UsageError("A net has no tree to be drawn: leave out --save-dot, or use another --learner.")
    if no_fence and options["fence"] is not None:
        raise click.UsageError("Give --fence or --no-fence, and not both.")
    check_outputs({"--out": out, "--save-dot": save_dot}, request.files)
    data = gather(screen, request)
    if no_fence:
        options["fence"] = {}
    given = {name: value for name, value in options.items() if value is not None}
    learned = _learned(data, learner, {**given, "listener": heard(screen)})
    models.save(learned, out)
    if save_dot is not None:
        write_whole(save_dot, dot_source(learned).encode())
    if as_json:
        screen.json(_facts(learned, data, out))
    else:
        _tell(screen, learned, data, out)


def _learned(data: "DataSet", learner: str, options: dict[str, Any]) -> "Model":
    try:
        from tunewise.learn.options import Training
        from tunewise.learn.training import train as learn

        return learn(data, Training(**options), learner)
    except ModuleNotFoundError as error:
        way = "pip install 'tunewise[learn]'"
        raise MissingPart(f"training needs {error.name}, which is not installed; run: {way}") from None


def heard(screen: Screen) -> "Callable[[Epoch], None]":
    """Return what tells how a net gets on: a line at the end of each part, and a few on the way."""

    def hear(epoch: "Epoch") -> None:
        if epoch.number == epoch.of or epoch.number % max(epoch.of // _LINES, 1) == 0:
            held_out = "" if epoch.held_out is None else f", regret on problems held out {exp(epoch.held_out):.3f}"
            screen.say(f"{epoch.part}: epoch {epoch.number} of {epoch.of}, loss {epoch.loss:.4f}{held_out}")

    return hear


def _facts(model: "Model", data: "DataSet", out: Path) -> dict[str, Any]:
    return {
        "model": str(out),
        "decision": model.card.decision,
        "learner": model.card.learner,
        "problems": len(data),
        "choices": [dict(choice) for choice in model.choices],
        "default": None if data.default is None else dict(data.configs[data.default]),
        "fence": dict(model.card.fence),
        "size": _size(model),
        "scores": dict(model.card.scores),
    }


def _size(model: "Model") -> str:
    if isinstance(model.body, models.Tree):
        return count((len(model.body.nodes) + 1) // 2, "leaf").replace("leafs", "leaves")
    return count(len(model.body.trees), "tree") if isinstance(model.body, models.Forest) else "a net"


def _tell(screen: Screen, model: "Model", data: "DataSet", out: Path) -> None:
    scores = model.card.scores
    names = (("model", "regret"), ("best single choice", "best_single_regret"), ("default", "default_regret"))
    rows = [(title, f"{scores[name]:.3f}") for title, name in names if name in scores]
    screen.table(("held-out regret of", "geomean"), rows, right=("geomean",))
    shown = ", ".join(show(choice) for choice in model.choices[:8]) + (", ..." if len(model.choices) > 8 else "")
    what = _size(model) if model.card.learner == "net" else f"{model.card.learner} of {_size(model)}"
    screen.show(f"{what} between {count(len(model.choices), 'choice')}: {shown}")
    screen.say(f"{out}: {one_line(model.card.decision)}, learned from {count(len(data), 'problem')}")
