"""From data about products to models, one for each decision, and how good they are on products they have not seen."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tunewise import models
from tunewise.decision import canonical, detect
from tunewise.deploy.inductor.datafiles import decision_of, size_of
from tunewise.deploy.inductor.problems import OPS, THREADS, environment_here, name_of
from tunewise.deploy.inductor.shapes import Shape
from tunewise.errors import InvalidData, InvalidFile, MissingPart, NotFound
from tunewise.formats.findings import slug
from tunewise.models import Model

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet, Floats
    from tunewise.learn.options import Training
    from tunewise.learn.prediction import Prediction
    from tunewise.learn.validate import Validation

# What people who come from diode call a kind of model, and the learner that makes it.
LEARNERS = {"auto": "auto", "tree": "tree", "ranker": "ranker", "gbdt": "gbdt", "deep": "net"}
MARGIN = 8.0  # a product a few times larger than all that were measured is still the same question
CPU_DECISIONS = tuple(map(name_of, OPS))
_ENDING = ".json"


@dataclass(frozen=True)
class Judged:
    """How a model does on measurements: its choices and, where it predicts times, how far these are off."""

    decision: str
    path: Path
    choices: "Validation"
    times: "Prediction | None"

    def as_json(self) -> dict[str, Any]:
        """Return both as plain values."""
        times = None if self.times is None else self.times.as_json()
        return {"decision": self.decision, "model": str(self.path), **self.choices.as_json(), "prediction": times}


def train(
    data: Mapping[str, "DataSet"], kind: str = "auto", options: "Training | None" = None, *, threads: int = 1
) -> dict[str, Model]:
    """Return a model for every decision of the data; `kind` is tree, ranker, gbdt, deep or auto.

    `threads` is how many the products were measured with: what is learned is for so many.

    Raises InvalidData where nothing can be learned, and MissingPart where a package is not installed.
    """
    from tunewise.learn.options import Training
    from tunewise.learn.training import train as learn

    if kind not in LEARNERS:
        raise NotFound(f"there is no kind of model {kind!r}; there are {', '.join(LEARNERS)}")
    chosen = options or Training(margin=MARGIN)
    pools = {name: _pool(name, data) for name in data}
    return {
        name: fenced(learn(one, replace(chosen, name=name), LEARNERS[kind]), threads) for name, one in pools.items()
    }


def _pool(name: str, data: Mapping[str, "DataSet"]) -> "DataSet":
    """Return what a decision is learned from: products on a CPU share their kernels, and what was measured of either.

    On 82 products held out in turn, pooled data halved the log regret of a model beyond the noise.
    """
    from tunewise.formats.merging import merge

    own = data[name]
    others = [
        one
        for other, one in data.items()
        if {name, other} <= set(CPU_DECISIONS) and other != name and set(one.names) == set(own.names)
    ]
    return merge([own, *(replace(one, decision=name) for one in others)])


def fenced(model: Model, threads: int) -> Model:
    """Return a model of this machine's products with its vector unit, threads and torch's version in the fence too.

    Which register blocks there are depends on the first, and which is best on all of them. A model of another CPU, or
    of a GPU, stays as it is.
    """
    card = model.card
    if card.decision not in CPU_DECISIONS or card.fence.get("hardware.name") != detect("cpu").name:
        return model
    try:
        here = environment_here(threads).must
    except MissingPart:  # learning needs no torch; who has none cannot tell more
        return model
    more = {name: here[name] for name in (THREADS, "isa", "library.torch") if name in here}
    return msgspec.structs.replace(model, card=msgspec.structs.replace(card, fence={**card.fence, **more}))


def save(learned: Mapping[str, Model], place: Path | str) -> dict[str, Path]:
    """Write models into a directory, one file for each decision, and return where they are."""
    directory = Path(place)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{directory} cannot be made: {error.strerror}; choose another place for it") from None
    files = {name: directory / _file_name(name) for name in learned}
    for name, file in files.items():
        models.save(learned[name], file)
    return files


def load(place: Path | str) -> dict[Path, Model]:
    """Return the models of a directory, or of one file; raises NotFound where there are none."""
    path = Path(place)
    files = sorted(path.glob(f"*{_ENDING}")) if path.is_dir() else [path]
    if not files:
        raise NotFound(f"{path} holds no model; make some with: tunewise torch train --out {path}")
    return {file: models.load(file) for file in files}


def judge(learned: Mapping[Path, Model], data: Mapping[str, "DataSet"], *, worst: int = 10) -> list[Judged]:
    """Return how models do on data about their decisions; raises InvalidData where no model and no data meet."""
    found = [
        _judged(path, model, data[model.card.decision], worst)
        for path, model in learned.items()
        if model.card.decision in data
    ]
    if not found:
        known = ", ".join(sorted({model.card.decision for model in learned.values()}))
        raise InvalidData(f"the models are about {known} and the data about {', '.join(data) or 'nothing'}")
    return found


def by_use(shapes: Iterable[Shape]) -> "Callable[[DataSet], Floats]":
    """Return what weighs problems by how often a program asks for them; those it never asks for count least.

    `Training(weights=by_use(shapes))` makes a model care for what a program does most.
    """
    uses: dict[tuple[str, ...], float] = {}
    for shape in shapes:
        size = size_of(decision_of(shape.op), {"b": shape.b, **shape.features})
        uses[size] = uses.get(size, 0.0) + shape.weight
    least = min(uses.values(), default=1.0)

    def weights(data: "DataSet") -> "Floats":
        import numpy as np

        sizes = [size_of(data.decision, data.problem(number)) for number in range(len(data))]
        found: Floats = np.array([uses.get(size, least) for size in sizes], dtype=np.float64)
        found /= found.mean()
        return found

    return weights


def _judged(path: Path, model: Model, data: "DataSet", worst: int) -> Judged:
    from tunewise.learn.prediction import prediction, predicts_times
    from tunewise.learn.validate import validate

    missing = [column.name for column in model.columns.problem if column.name not in data.names]
    if missing:
        raise InvalidData(f"{path} asks for {', '.join(missing)}, and the data have {', '.join(data.names)}")
    types = [column.name for column in data.features if column.is_word and column.name == "dtype"]
    times = prediction(model, data, worst=worst, by=types) if predicts_times(model) else None
    return Judged(model.card.decision, path, validate(model, data, worst=worst), times)


def _file_name(decision: str) -> str:
    """Return a file name for a decision's model, another one for every decision."""
    name = slug(decision)
    return f"{name}{_ENDING}" if name == decision else f"{name}-{canonical.digest(decision)[:8]}{_ENDING}"
