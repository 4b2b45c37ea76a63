"""`tunewise validate`: how good a model is on problems it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tunewise import models
from tunewise.cli.data_files import Request, data_options, gather
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.errors import InvalidData
from tunewise.models.source import Generated, load_source
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.validate import Spread, Validation

_WORST = 5  # problems shown; --json has more


@click.command(
    epilog=example(
        "tunewise collect sort --log-uniform n=16:4096 --one-of dtype=int64,order=random:sorted --num-problems 12",
        "tunewise train --decision sort --out sort.json",
        "tunewise validate sort.json --decision sort",
    )
)
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@data_options
@json_option
@pass_screen
def validate(screen: Screen, model: Path, request: Request, as_json: bool) -> None:
    """Judge a model on measurements.

    MODEL is a file of `tunewise train` or a Python module of `tunewise generate`. Regret is the time of what was chosen
    over the best time measured; where the model abstains, the default is taken. Give problems it was not trained on.
    """
    judged = _load(model)
    data = gather(screen, request)
    _check_features(model, judged, data)
    from tunewise.learn.validate import validate as judge

    found = judge(judged, data)
    if as_json:
        screen.json(found.as_json())
    else:
        _tell(screen, found)


def _load(path: Path) -> Generated | models.Model:
    return load_source(path) if path.suffix == ".py" else models.load(path)


def _check_features(path: Path, judged: Generated | models.Model, data: "DataSet") -> None:
    """Raise InvalidData for data that lack a feature: the model would abstain everywhere, and nobody would know why."""
    asked = judged.features if isinstance(judged, Generated) else [column.name for column in judged.columns.problem]
    missing = [name for name in asked if name not in data.names]
    if missing:
        has = ", ".join(data.names)
        raise InvalidData(f"{path} asks for {', '.join(missing)}, and the data have {has}: is it of another decision?")


def _tell(screen: Screen, found: "Validation") -> None:
    rows = [("model", found.regret), ("best single choice", found.best_single_regret)]
    if found.default_regret is not None:
        rows.append(("default", found.default_regret))
    columns = ("regret of", "geomean", "p95", "max")
    screen.table(columns, [_cells(*row) for row in rows], right=columns[1:])
    screen.show(f"{found.problems} problems, {found.coverage:.0%} answered; noise floor {found.noise_floor:.3f}")
    for case in found.worst[:_WORST]:
        chosen = "nothing" if case.chosen is None else show(case.chosen)
        screen.show(f"{case.regret:.3f}  {show(case.problem)}: chose {chosen}, best {show(case.best)}")


def _cells(name: str, regret: "Spread") -> tuple[str, ...]:
    return name, f"{regret.geomean:.3f}", f"{regret.p95:.3f}", f"{regret.max:.3f}"
