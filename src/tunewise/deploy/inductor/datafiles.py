"""What was measured of products as data sets: from the store, to files, and from directories of files."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tunewise.decision import Problem, canonical
from tunewise.deploy.inductor.problems import ATEN, OPS, name_of
from tunewise.errors import InvalidData, NotFound
from tunewise.formats import diode
from tunewise.formats.torn import load
from tunewise.formats.writing import replaced
from tunewise.session.context import current_store

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.store import Store

Format = Literal["json", "msgpack", "parquet"]
EXTENSIONS = ("json", "msgpack", "parquet")
_PREFIX = "torch."
Size = tuple[str, ...]


def decisions_in(store: "Store") -> list[str]:
    """Return the decisions of torch.compile that a store knows something of."""
    return [name for name in store.decisions() if name.startswith(_PREFIX)]


def remembered(
    store: "Store | None" = None, problems: Mapping[str, Collection[Problem]] | None = None
) -> dict[str, "DataSet"]:
    """Return what a store remembers of products, a data set for each decision; of some problems, or of all.

    Raises InvalidData where there is nothing.
    """
    from tunewise.formats.trials import data_of

    source = current_store() if store is None else store
    wanted = dict.fromkeys(decisions_in(source)) if problems is None else problems
    found = {}
    for name, some in wanted.items():
        records = source.records(name)
        if some is not None:
            records = (record for record in records if record.subject.problem in some)
        found[name] = data_of(records, name)
    if not found:
        raise InvalidData("no product was measured yet; begin with: tunewise torch collect")
    return found


def write(data: Mapping[str, "DataSet"], path: Path | str, kind: Format) -> list[Path]:
    """Write data sets to a file, whole or not at all, and return the files written.

    One of diode's holds all decisions. A Parquet file holds one: of several, each has the op in its name.
    """
    from tunewise.formats import datasets, diode_data, diode_findings

    target = Path(path)
    if kind == "parquet":
        places = {name: _named(target, name) if len(data) > 1 else target for name in data}
        for name, place in places.items():
            datasets.write(data[name], place, "parquet")
        return list(places.values())
    writer = diode_findings.write_json if kind == "json" else diode_findings.write_msgpack
    try:
        (written,) = writer(list(chain.from_iterable(map(diode_data.findings_of, data.values()))))
    except ValueError as error:
        raise InvalidData(f"{', '.join(data)}: no diode data set can be written: {error}") from None
    with replaced(target) as part:
        part.write_bytes(written.raw)
    return [target]


def files_in(place: Path | str, extensions: Sequence[str] = EXTENSIONS) -> list[Path]:
    """Return the data files of a directory and those below it, by name; raises NotFound where there are none."""
    directory, endings = Path(place), {f".{extension.lstrip('.')}" for extension in extensions}
    if not directory.is_dir():
        raise NotFound(f"there is no directory {str(place)!r}")
    found = sorted(path for path in directory.rglob("*") if path.suffix in endings and path.is_file())
    if not found:
        raise NotFound(f"{directory} holds no file that ends with {', '.join(sorted(endings))}")
    return found


def read(files: Iterable[Path | str]) -> dict[str, "DataSet"]:
    """Return what files of measurements tell, a data set for each decision, in the order they first come."""
    from tunewise.formats import datasets

    parts: dict[str, list[DataSet]] = {}
    for file in map(Path, files):
        for name in _decisions(file):
            data = datasets.read([file], decision=name)
            parts.setdefault(data.decision, []).append(data)
    if not parts:
        raise InvalidData("no file of measurements is named")
    from tunewise.formats.merging import merge

    return {name: _with_default(merge(some)) for name, some in parts.items()}


def sizes_in(data: Mapping[str, "DataSet"]) -> set[Size]:
    """Return what products data sets are about: decision, sizes and type, however the factors lie."""
    return {size_of(name, one.problem(number)) for name, one in data.items() for number in range(len(one))}


def size_of(decision: str, problem: Mapping[str, object]) -> Size:
    """Return a product by its decision, sizes and type."""
    return (decision, *(canonical.encode(problem.get(name, 1)) for name in ("b", "m", "n", "k", "dtype")))


def decision_of(op: str) -> str:
    """Return the decision that the product of an op is asked about on a CPU: a constant weight makes it a linear."""
    return name_of(op if op in OPS else "linear")


def _decisions(file: Path) -> list[str | None]:
    """Return the decisions a file is about; None where its reader finds that out."""
    if file.suffix not in (".json", ".msgpack"):
        return [None]
    content = load(file)
    if not diode.looks_like(content.raw[:4096]):
        return [None]
    try:
        return list(dict.fromkeys(place.decision for place in diode.measured(diode.parse(content))))
    except ValueError:  # the reader says it with the place
        return [None]


def _with_default(data: "DataSet") -> "DataSet":
    """Return the data with the library's kernel as default where a file does not tell: it is what Inductor takes."""
    aten = [config for config in data.configs if config.get("kernel") == ATEN["kernel"]]
    return data if data.default is not None or len(aten) != 1 else data.with_default(aten[0])


def _named(target: Path, decision: str) -> Path:
    return target.with_name(f"{target.stem}.{decision.removeprefix(_PREFIX)}{target.suffix or '.parquet'}")
