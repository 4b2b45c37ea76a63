"""`tunewise train`: a heuristic from measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise import models
from tunewise.cli.data_files import Request, data_options, gather
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.codegen import dot_source
from tunewise.errors import MissingPart
from tunewise.models.whole import write_whole
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.models import Model

_FILE = click.Path(path_type=Path, dir_okay=False)
_LEARNERS = ("auto", "tree", "regression", "ranker", "gbdt", "net")


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
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Equal seeds learn alike.")
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
    as_json: bool,
    **options: Any,
) -> None:
    """Learn a heuristic from measurements.

    DATA are files of measurements; without any it is what the store remembers of --decision. Shown is the regret (time
    of what was chosen / best time) on problems that were held out while the model learned.
    """
    data = gather(screen, request)
    learned = _learned(data, learner, {name: value for name, value in options.items() if value is not None})
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


def _facts(model: "Model", data: "DataSet", out: Path) -> dict[str, Any]:
    return {
        "model": str(out),
        "decision": model.card.decision,
        "learner": model.card.learner,
        "problems": len(data),
        "choices": [dict(choice) for choice in model.choices],
        "default": None if model.default is None else dict(model.choices[model.default]),
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
    screen.show(f"{model.card.learner} of {_size(model)} between {count(len(model.choices), 'choice')}: {shown}")
    screen.say(f"{out}: {model.card.decision}, learned from {count(len(data), 'problem')}")
