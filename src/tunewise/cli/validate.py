"""`tunewise validate`: how good a model is on problems it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tunewise import models
from tunewise.cli.data_files import Request, data_options, gather
from tunewise.cli.fitting import check_fit
from tunewise.cli.screen import Screen, count, example, json_option, one_line, pass_screen, seconds
from tunewise.errors import InvalidData
from tunewise.models.source import Generated, load_source
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.prediction import Errors, Prediction
    from tunewise.learn.validate import Spread, Validation

_WORST, _WORST_JSON = 5, 10  # problems and predictions named, unless --worst says how many


@click.command(
    epilog=example(
        "tunewise collect sort --log-uniform n=16:4096 --one-of dtype=int64,order=random:sorted --num-problems 12",
        "tunewise train --decision sort --out sort.json",
        "tunewise validate sort.json --decision sort",
        "tunewise train --decision sort --out sort-ranker.json --learner ranker",
        "tunewise validate sort-ranker.json --decision sort --worst 3 --by dtype",
    )
)
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@data_options
@click.option("--worst", type=click.IntRange(min=0), help="Name so many of the worst problems and predictions.")
@click.option("--by", multiple=True, metavar="FEATURE", help="Errors of predicted times by this feature of words too.")
@json_option
@pass_screen
def validate(
    screen: Screen, model: Path, request: Request, worst: int | None, by: tuple[str, ...], as_json: bool
) -> None:
    """Judge a model on measurements.

    MODEL is a file of `tunewise train` or a Python module of `tunewise generate`. Regret is the time of what was chosen
    over the best time measured; where the model abstains, or names what was never measured, the default is taken. Give
    problems it was not trained on.
    Of a model that predicts times, the errors of these are told too.
    """
    judged = _load(model)
    data = gather(screen, request)
    check_fit(model, judged, data)
    from tunewise.learn.validate import validate as judge

    found = judge(judged, data, worst=_WORST_JSON if worst is None else worst)
    times = _prediction(judged, data, _WORST_JSON if worst is None else worst, by, is_wanted=bool(by))
    for warning in found.warnings:
        screen.say(f"warning: {warning}")
    if as_json:
        screen.json({**found.as_json(), "prediction": None if times is None else times.as_json()})
        return
    shown = _WORST if worst is None else worst
    _tell(screen, found, shown)
    if times is not None:
        _tell_times(screen, times, shown)


def _prediction(
    judged: Generated | models.Model, data: "DataSet", worst: int, by: tuple[str, ...], *, is_wanted: bool
) -> "Prediction | None":
    """Return how well times are predicted; None where the model predicts none here, unless that was asked for."""
    from tunewise.learn.prediction import prediction, predicts_times

    if is_wanted and not isinstance(judged, models.Model):
        raise InvalidData("generated code ranks choices and predicts no times; leave out --by, or give its model")
    if not isinstance(judged, models.Model) or not (is_wanted or predicts_times(judged)):
        return None
    try:
        return prediction(judged, data, worst=worst, by=by)
    except InvalidData:  # it knows none of the problems: its choices have been judged all the same
        if is_wanted:
            raise
        return None


def _load(path: Path) -> Generated | models.Model:
    return load_source(path) if path.suffix == ".py" else models.load(path)


def _tell(screen: Screen, found: "Validation", worst: int) -> None:
    rows = [("model", found.regret), ("best single choice", found.best_single_regret)]
    if found.default_regret is not None:
        rows.append(("default", found.default_regret))
    columns = ("regret of", "geomean", "p95", "max")
    screen.table(columns, [_cells(*row) for row in rows], right=columns[1:])
    problems, unmeasured = count(found.problems, "problem"), found.counts["unmeasured"]
    noise = "unknown: one sample a row" if found.noise_floor is None else f"{found.noise_floor:.3f}"
    never = f", {unmeasured} by a config never measured there and taken as the default" if unmeasured else ""
    screen.show(f"{problems}, {found.coverage:.0%} answered{never}; noise floor {noise}")
    for case in found.worst[:worst]:
        chosen = "nothing" if case.chosen is None else show(case.chosen)
        line = f"{case.regret:.3f}  {show(case.problem)}: chose {chosen}, best {show(case.best)}"
        screen.show(one_line(line))


def _tell_times(screen: Screen, found: "Prediction", worst: int) -> None:
    rows = [("all", found.errors)]
    rows += [(f"{name}={word}", errors) for name, words in found.by.items() for word, errors in words.items()]
    columns = ("predicted times of", "rows", "MSE of log", "RMSE of log", "RMSE")
    screen.table(columns, [_error_cells(*row) for row in rows], right=columns[1:])
    centred = "; known up to a factor of each problem, and compared without it" if found.is_centred else ""
    unknown = f"; {count(found.unknown, 'row')} outside of what it knows" if found.unknown else ""
    screen.show(f"log: the natural logarithm of seconds{centred}{unknown}")
    for miss in found.worst[:worst]:
        times = f"predicted {seconds(miss.predicted_s)}, took {seconds(miss.actual_s)}"
        screen.show(one_line(f"{miss.factor:.2f}x  {show(miss.problem)}: {show(miss.config)} {times}"))


def _cells(name: str, regret: "Spread") -> tuple[str, ...]:
    return name, f"{regret.geomean:.3f}", f"{regret.p95:.3f}", f"{regret.max:.3f}"


def _error_cells(name: str, errors: "Errors") -> tuple[str, ...]:
    return name, str(errors.rows), f"{errors.mse:.4f}", f"{errors.rmse:.3f}", f"{errors.rmse_ms:.4g} ms"
