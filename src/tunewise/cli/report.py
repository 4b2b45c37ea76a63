"""`tunewise report`: data, headroom, a model and how tuning went, as one HTML page."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tunewise.cli.data_files import Request, data_options, gather
from tunewise.cli.fitting import check_fit
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.errors import NotFound
from tunewise.models import load
from tunewise.session.recall import Measured
from tunewise.session.recall import trials as remembered

if TYPE_CHECKING:
    from tunewise.report.findings import Findings

_FILE = click.Path(path_type=Path)


@click.command(
    epilog=example(
        "tunewise collect sort --problem n=1000,dtype=int64,order=random --problem n=20000,dtype=int64,order=random",
        "tunewise report --decision sort --out sort.html",
    )
)
@data_options
@click.option("--model", type=_FILE, help="A model file of `tunewise train`, shown and judged on the data.")
@click.option("--out", type=_FILE, default=Path("report.html"), show_default=True, help="Where to write the page.")
@json_option
@pass_screen
def report(screen: Screen, request: Request, model: Path | None, out: Path, as_json: bool) -> None:
    """Write a report as one HTML page.

    DATA is what `tunewise train` takes; without it, what the store remembers of a --decision is used. The page needs no
    network and no script, and reads well on light and dark screens.
    """
    check_outputs({"--out": out}, [*request.files, model])
    data = gather(screen, request)
    from tunewise.report.findings import gather as findings_of
    from tunewise.report.page import save

    learned = load(model) if model is not None else None
    if model is not None and learned is not None:
        check_fit(model, learned, data)
    found = findings_of(data, learned, _trials(data.decision))
    save(found, out)
    if as_json:
        screen.json({"file": str(out), **found.as_json()})
    else:
        _tell(screen, found, out)


def _trials(decision: str) -> list[Measured]:
    try:
        return list(remembered(decision))
    except NotFound:
        return []


def _tell(screen: Screen, found: "Findings", out: Path) -> None:
    scores = found.scores
    ways = [("default", scores.default_regret), ("best single", scores.best_single_regret)]
    if found.model is not None:
        ways.insert(0, ("learned", scores.regret))
    rows = [
        (name, *(f"{value:.3f}" for value in (spread.geomean, spread.p95, spread.max)))
        for name, spread in ways
        if spread is not None
    ]
    screen.table(("regret of", "geomean", "p95", "max"), rows, right=("geomean", "p95", "max"))
    screen.say(f"report of {found.decision} on {count(scores.problems, 'problem')} written to {out}")
