"""`tunewise torch train` and `validate`: models from what was collected, and how good they are."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise.cli.data_files import Columns
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen, seconds
from tunewise.cli.torch_collect import apart
from tunewise.cli.train import heard
from tunewise.deploy.inductor import datafiles, learning
from tunewise.deploy.inductor.shapes import shapeset_shapes
from tunewise.errors import InvalidData, MissingPart
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.deploy.inductor.learning import Judged
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.prediction import Prediction
    from tunewise.models import Model

_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_COLLECT = "tunewise torch collect --op linear --power-of-two --min-size 4 --max-size 128 --num-shapes 5"
_LOSS = 1.005  # a regret that is worth a line
_HOLD_OUT = "run tunewise torch create-validation, give --data-dir, or --trained"
data_dir_option = click.option("--data-dir", type=_DIRECTORY, help="Directory of data files, instead of the store.")
extensions_option = click.option(
    "--file-extensions",
    type=Columns(),
    default=",".join(datafiles.EXTENSIONS),
    show_default=True,
    help="How the files in it end.",
)


@click.command(
    "train", epilog=example(_COLLECT, "tunewise torch train --out models", "tunewise torch validate models --trained")
)
@data_dir_option
@extensions_option
@click.option("--out", required=True, type=_DIRECTORY, help="Directory of the models, one for each decision.")
@click.option(
    "--model", "kind", type=click.Choice(list(learning.LEARNERS)), default="auto", show_default=True, help="What kind."
)
@click.option("--weights", type=_FILE, help="A shapeset of `collect --record`: what is used more counts more.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Equal seeds learn alike.")
@click.option("--epochs", type=click.IntRange(min=1), help="Show a deep model all rows at most so many times.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Show it so many rows at a time.")
@click.option("--learning-rate", type=Amount(min=0, max=1, min_open=True), help="How far it goes at a time.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="What was measured ran on so many."
)
@json_option
@pass_screen
def train(
    screen: Screen,
    /,
    data_dir: Path | None,
    file_extensions: Sequence[str],
    out: Path,
    kind: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn models from what was collected.

    Each decision, `torch.linear` and `torch.bmm` on a CPU, gets a model of its own. Shown is the regret (time of what
    was chosen / best time) on problems that were held out while it learned.
    """
    data = data_of(data_dir, file_extensions)
    learned = trained(screen, data, kind, options)
    files = learning.save(learned, out)
    rows = [of_model(learned[name], data[name], file) for name, file in files.items()]
    if as_json:
        screen.json({"models": rows})
        return
    tell_models(screen, rows)


@click.command(
    "validate",
    epilog=example(_COLLECT, "tunewise torch train --out models", "tunewise torch validate models --trained"),
)
@click.argument("models", type=click.Path(path_type=Path))
@data_dir_option
@extensions_option
@click.option("--trained", is_flag=True, help="On what the models may have learned from, in the store.")
@click.option("--top-n-worst", "worst", type=click.IntRange(min=0), default=5, show_default=True, help="Name so many.")
@json_option
@pass_screen
def validate(
    screen: Screen,
    models: Path,
    data_dir: Path | None,
    file_extensions: Sequence[str],
    trained: bool,
    worst: int,
    as_json: bool,
) -> None:
    """Judge models on shapes they have not seen.

    MODELS is a directory of `tunewise torch train`, or one model. The data are those of `create-validation`. Regret is
    the time of what was chosen over the best time; of models that predict times, the errors of these are told too.
    """
    data = data_of(data_dir, file_extensions, is_validation=not trained)
    found = judged(models, data, worst)
    if as_json:
        screen.json(of_judged(found))
        return
    tell_judged(screen, found, worst)


def data_of(
    data_dir: Path | None, extensions: Sequence[str] = datafiles.EXTENSIONS, *, is_validation: bool = False
) -> "dict[str, DataSet]":
    """Return the data of a directory, or of the store that models learn from, or are judged by."""
    try:
        if data_dir is not None:
            return datafiles.read(datafiles.files_in(data_dir, extensions))
        with apart() if is_validation else nullcontext():
            store = sound_store()
            if is_validation and not datafiles.decisions_in(store):
                raise InvalidData(f"no shape is held out yet: {_HOLD_OUT}")
            return datafiles.remembered(store)
    except ModuleNotFoundError as error:
        raise MissingPart(f"data sets need {error.name}; run: pip install 'tunewise[learn]'") from None


def trained(screen: Screen, data: "dict[str, DataSet]", kind: str, options: Mapping[str, Any]) -> "dict[str, Model]":
    """Return a model for every decision; the options are those of training, a file of `weights` among them."""
    try:
        from tunewise.learn.options import Training

        given = {name: value for name, value in options.items() if value is not None}
        weights, threads = given.pop("weights", None), given.pop("threads", 1)
        if weights is not None:
            given["weights"] = learning.by_use(shapeset_shapes(weights))
        for name, one in data.items():
            screen.say(f"{name}: learning from {count(len(one), 'problem')}")
        chosen = Training(margin=learning.MARGIN, **given, listener=heard(screen))
        return learning.train(data, kind, chosen, threads=threads)
    except ModuleNotFoundError as error:
        raise MissingPart(f"training needs {error.name}; run: pip install 'tunewise[learn]'") from None


def judged(models: Path, data: "dict[str, DataSet]", worst: int) -> "list[Judged]":
    """Return how the models of a directory do."""
    return learning.judge(learning.load(models), data, worst=worst)


def of_model(model: "Model", data: "DataSet", file: Path) -> dict[str, Any]:
    """Return a model as plain values."""
    return {
        "decision": model.card.decision,
        "model": str(file),
        "learner": model.card.learner,
        "problems": len(data),
        "choices": len(model.choices),
        "scores": dict(model.card.scores),
    }


def tell_models(screen: Screen, rows: Sequence[Mapping[str, Any]]) -> None:
    """Show models in a table."""
    columns = ("decision", "model", "learner", "problems", "choices", "held-out regret", "best single", "default")
    names = ("regret", "best_single_regret", "default_regret")
    screen.table(
        columns,
        [[*(row[name] for name in columns[:5]), *(_score(row["scores"], name) for name in names)] for row in rows],
        right=columns[3:],
    )


def of_judged(found: "Sequence[Judged]") -> dict[str, Any]:
    """Return what validation found, and the errors of all decisions together where times are predicted."""
    times = _together(found)
    return {"models": [one.as_json() for one in found], "prediction": None if times is None else times.as_json()}


def tell_judged(screen: Screen, found: "Sequence[Judged]", worst: int) -> None:
    """Show what validation found: regret by decision and type, errors of times, and the worst of both."""
    columns = ("regret on", "problems", "model", "p95", "top-3", "best single", "default")
    screen.table(columns, [row for one in found for row in _regrets(one)], right=columns[1:])
    for one in found:
        for case in (case for case in one.choices.worst[:worst] if case.regret > _LOSS):
            chosen = "nothing" if case.chosen is None else show(case.chosen)
            screen.show(f"{case.regret:.3f}  {show(case.problem)}: chose {chosen}, best {show(case.best)}")
    times = _together(found)
    if times is None:
        return
    headings = ("predicted times of", "rows", "MSE of log", "RMSE of log", "RMSE")
    errors = [("all", times.errors), *((word, e) for words in times.by.values() for word, e in words.items())]
    rows = [(name, e.rows, f"{e.mse:.4f}", f"{e.rmse:.3f}", f"{e.rmse_ms:.4g} ms") for name, e in errors]
    screen.table(headings, rows, right=headings[1:])
    for miss in times.worst[:worst]:
        said = f"predicted {seconds(miss.predicted_s)}, took {seconds(miss.actual_s)}"
        screen.show(f"{miss.factor:.2f}x  {miss.decision} {show(miss.problem)}: {show(miss.config)} {said}")


def _together(found: "Sequence[Judged]") -> "Prediction | None":
    from tunewise.learn.prediction import together

    times = [one.times for one in found if one.times is not None]
    return together(times) if times else None


def _regrets(one: "Judged") -> list[tuple[str, ...]]:
    choices = one.choices
    default = "-" if choices.default_regret is None else f"{choices.default_regret.geomean:.3f}"
    whole = (
        one.decision,
        str(choices.problems),
        f"{choices.regret.geomean:.3f}",
        f"{choices.regret.p95:.3f}",
        f"{choices.top[3]:.3f}",
        f"{choices.best_single_regret.geomean:.3f}",
        default,
    )
    types = choices.by_category.get("dtype", {})
    parts = [
        (f"{one.decision} {name}", "", f"{s.geomean:.3f}", f"{s.p95:.3f}", "", "", "") for name, s in types.items()
    ]
    return [whole, *(parts if len(parts) > 1 else [])]


def _score(scores: Mapping[str, float], name: str) -> str:
    return f"{scores[name]:.3f}" if name in scores else "-"
