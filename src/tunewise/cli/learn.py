"""`tunewise learn`: keep what the store knows at hand, as seeds for the next tuning run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise import models, settings
from tunewise.cli.data_files import Request, gather
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.decision import canonical
from tunewise.errors import InvalidFile, MissingPart
from tunewise.formats.findings import slug
from tunewise.session import context

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.models import Model

_LEARNERS = ("ranker", "auto", "tree", "regression", "gbdt")


@click.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000 --problem n=20000,m=50,span=10000",
        "tunewise learn --seeds isin",
    )
)
@click.option(
    "--seeds",
    "decisions",
    required=True,
    multiple=True,
    metavar="DECISION",
    help="Learn what to try first for this decision; repeatable.",
)
@click.option(
    "--learner", type=click.Choice(_LEARNERS), default="ranker", show_default=True, help="What kind of model."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Directory, instead of the home's own.")
@json_option
@pass_screen
def learn(screen: Screen, decisions: tuple[str, ...], learner: str, out: Path | None, as_json: bool) -> None:
    """Learn seeds from everything remembered.

    The model takes the place of an earlier one. Tuning runs of the decision ask it what to try first, on this and any
    other device; questions are never answered by it: for that, train and validate a heuristic.
    """
    place = out or settings.current().home / "heuristics"
    found = [_learned(screen, decision, learner, place) for decision in dict.fromkeys(decisions)]
    context.refresh()
    if as_json:
        screen.json({"models": found})
        return
    columns = ("decision", "problems", "choices", "held-out regret", "model")
    rows = [(f["decision"], f["problems"], f["choices"], _shown(f["regret"]), f["model"]) for f in found]
    screen.table(columns, rows, right=columns[1:4])


def _learned(screen: Screen, decision: str, learner: str, place: Path) -> dict[str, Any]:
    data = gather(screen, Request((), decision))
    screen.say(f"{decision}: learning from {count(len(data), 'problem')}")
    model = _train(data, learner)
    file = _made(place) / _file_name(decision)
    models.save(model, file)
    return {
        "decision": decision,
        "problems": len(data),
        "choices": len(model.choices),
        "regret": model.card.scores.get("regret"),
        "model": str(file),
    }


def _made(place: Path) -> Path:
    """Return a directory, made where there is none."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{place} cannot be made: {error.strerror}; choose another place with --out") from None
    return place


def _file_name(decision: str) -> str:
    """Return a file name for a decision's model, another one for every decision."""
    name = slug(decision)
    return f"{name}.seeds.json" if name == decision else f"{name}-{canonical.digest(decision)[:8]}.seeds.json"


def _train(data: "DataSet", learner: str) -> "Model":
    try:
        from tunewise.learn.seeds import train_seeds

        return train_seeds(data, learner=learner)
    except ModuleNotFoundError as error:
        way = "pip install 'tunewise[learn]'"
        raise MissingPart(f"learning needs {error.name}, which is not installed; run: {way}") from None


def _shown(regret: float | None) -> str:
    return "-" if regret is None else f"{regret:.3f}"
