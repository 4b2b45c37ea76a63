"""AutoHeuristic logs, read and written: a line of JSON, a CSV header, and a row for every sample in milliseconds."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tunewise.decision import CHOICE, Scalar, canonical
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats import delimited
from tunewise.formats.arrow import Sheet, arrow_library
from tunewise.formats.building import Table, build
from tunewise.formats.cells import Coded, distinct, is_garbled, number
from tunewise.formats.dataset import TIMED, DataSet, status_of
from tunewise.formats.malformed import Faults, Loaded
from tunewise.formats.rows import rows_text
from tunewise.formats.tabular import flat, taken

FEEDBACK = "feedback"
MILLISECOND_S = 1e-3
_MAX_META_BYTES = 1 << 20
_MAX_WAYS = 2_000  # of joining the cells of one torn row
_SHARED, _CAPABILITY = "hardware.shared_memory", "hardware.capability"


class Metadata(msgspec.Struct, frozen=True):
    """The first line of a log: the device, the decision's name and its features by kind."""

    name: str
    numerical_features: tuple[str, ...]
    categorical_features: tuple[str, ...]
    shared_memory: Any = None
    device_capa: Any = None
    hardware: dict[str, Any] = {}  # ours: facts such as hardware.name, which the two above do not tell

    @property
    def facts(self) -> dict[str, Any]:
        """What the line tells of the device, under our names."""
        facts = {name: value for name, value in self.hardware.items() if isinstance(value, int | str)}
        if isinstance(self.device_capa, list) and all(isinstance(part, int) for part in self.device_capa):
            facts[_CAPABILITY] = ".".join(str(part) for part in self.device_capa)
        if isinstance(self.shared_memory, int):
            facts[_SHARED] = self.shared_memory
        return facts


def is_log(head: bytes) -> bool:
    """Return whether a file begins like a log."""
    return head.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") and b'"numerical_features"' in head


def metadata(path: Path, line: str) -> Metadata:
    """Return the metadata of a log's first line; raises InvalidFile where it is none."""
    try:
        canonical.decode(line, _MAX_META_BYTES)
        return msgspec.json.decode(line, type=Metadata)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path}:1 is not the metadata of an AutoHeuristic log: {error}") from None


def read(path: Path) -> Loaded:
    """Return the data of a log; raises InvalidFile where it is none.

    A comma that was not quoted is recovered where only one way of reading the row makes sense.
    """
    whole = delimited.source(path)
    meta = metadata(path, next(whole.lines(_MAX_META_BYTES + 1), ""))
    found = replace(whole, skip=1)
    names = delimited.header(found)
    _check_header(path, names)
    sheet, torn = delimited.read(found, names, [FEEDBACK])
    log = _Log(tuple(names), frozenset(meta.numerical_features))
    choices = frozenset(sheet.words(CHOICE).values)
    mended = [log.mend(text, choices) for text in torn.texts]
    lost = [text for text, cells in zip(torn.texts, mended, strict=True) if cells is None]
    sheet = _extended(sheet, names, [cells for cells in mended if cells])
    data, faults = _data(sheet, names[:-2], meta)
    return delimited.loaded(data, faults, lost, found)


def _check_header(path: Path, names: Sequence[str]) -> None:
    if len(names) < 3 or list(names[-2:]) != [CHOICE, FEEDBACK] or len(set(names)) < len(names):
        raise InvalidFile(f"{path}:2 is not a header of features that ends with {CHOICE},{FEEDBACK}")


def _data(sheet: Sheet, features: Sequence[str], meta: Metadata) -> tuple[DataSet, Faults]:
    faults = Faults(np.zeros(sheet.count, dtype=np.bool_))
    columns = {name: _feature(sheet.words(name), name, meta, faults) for name in features}
    choices = _feature(sheet.words(CHOICE), CHOICE, meta, faults)
    times, garbled = sheet.floats(FEEDBACK)
    faults.add(garbled | ~(times > 0), f"{FEEDBACK} is not a time above 0")
    samples = flat(times[:, None], MILLISECOND_S)
    table = Table(
        columns,
        {CHOICE: choices},
        np.where(samples.is_endless, status_of("runtime"), TIMED).astype(np.int8),
        samples.values,
        samples.starts,
        {name: Coded(np.zeros(sheet.count, dtype=np.int32), (value,)) for name, value in meta.facts.items()},
        is_log=True,
    )
    return build(meta.name, taken(table, faults.kept)), faults


def _feature(words: Coded[str], name: str, meta: Metadata, faults: Faults) -> Coded[Scalar]:
    if name not in meta.numerical_features:
        faults.add(words.where(list(map(is_garbled, words.values))), f"{name} is no text")
        return words
    values = [_switch(word) if number(word) is None else number(word) for word in words.values]
    faults.add(words.where([value is None for value in values]), f"{name} is not a number")
    return distinct(words.codes, values)


def _switch(word: str) -> int | None:
    return {"true": 1, "false": 0}.get(word.strip().lower())


def _extended(sheet: Sheet, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    if not rows:
        return sheet
    arrow = arrow_library()
    columns = {}
    for place, name in enumerate(names):
        column, more = sheet.columns[name], arrow.array([row[place] for row in rows])
        kind = arrow.float64() if arrow.types.is_floating(column.type) else arrow.string()
        columns[name] = arrow.chunked_array([*column.cast(kind).chunks, more.cast(kind)])
    return Sheet(columns, sheet.count + len(rows))


@dataclass(frozen=True, slots=True)
class _Log:
    """What a row must look like: the names of its cells, and which are numbers."""

    names: tuple[str, ...]
    numbers: frozenset[str]

    def mend(self, text: str, choices: frozenset[str]) -> list[str] | None:
        """Return the cells of a row with commas that should have been quoted, or None where several ways make sense."""
        cells = next(csv.reader(io.StringIO(text)), [])
        extra = len(cells) - len(self.names)
        words = [place for place, name in enumerate(self.names) if not self._is_number(name)]
        if extra <= 0 or not words:
            return None
        ways = []
        for tried, grown in enumerate(combinations_with_replacement(words, extra)):
            if tried >= _MAX_WAYS:
                return None
            joined = self._joined(cells, grown)
            if self._makes_sense(joined):
                ways.append(joined)
        known = [way for way in ways if way[-2] in choices] if len(ways) > 1 else ways
        return known[0] if len(known) == 1 else None

    def _makes_sense(self, cells: Sequence[str]) -> bool:
        pairs = zip(self.names, cells, strict=True)
        return all(number(cell) is not None for name, cell in pairs if self._is_number(name))

    def _is_number(self, name: str) -> bool:
        return name in self.numbers or name == FEEDBACK

    def _joined(self, cells: Sequence[str], grown: Sequence[int]) -> list[str]:
        """Return one cell a name; a name takes one cell more for every time it is among the grown ones."""
        joined, place = [], 0
        for taking in range(len(self.names)):
            width = 1 + grown.count(taking)
            joined.append(",".join(cells[place : place + width]))
            place += width
        return joined


def fields(data: DataSet) -> dict[str, str]:
    """Return what the log of a data set holds."""
    told = {
        name: f"the device: {value!r}"
        for name, value in _meta(data).items()
        if name in ("hardware", "shared_memory", "device_capa")
    }
    told |= {"name": f"the word {data.decision!r}"}
    told |= {column.name: "a word" if column.is_word else "a number" for column in data.features}
    return told | {CHOICE: "a config", FEEDBACK: "milliseconds a call, inf for what failed"}


def text_of(data: DataSet) -> str:
    """Return a data set as the text of a log: a row for every sample, in milliseconds, `inf` for what failed.

    Raises InvalidData for data of several devices, or with a feature whose name such a log keeps for itself.
    """
    if {CHOICE, FEEDBACK} & set(data.names):
        raise InvalidData(f"{data.decision}: such a log has its own {CHOICE} and {FEEDBACK}; rename that feature")
    lines = [msgspec.json.encode(_meta(data)).decode() + "\n", rows_text([[*data.names, CHOICE, FEEDBACK]])]
    words = [choice_word(config) for config in data.configs]
    for row, (problem, config) in enumerate(zip(data.rows.problem.tolist(), data.rows.config.tolist(), strict=True)):
        samples = data.rows.samples_s[data.rows.starts[row] : data.rows.starts[row + 1]].tolist()
        features = [column.at(problem) for column in data.features]
        times = [sample / MILLISECOND_S for sample in samples] if data.rows.status[row] == TIMED else ["inf"]
        lines.append(rows_text([*features, words[config], time] for time in times))
    return "".join(lines)


def _meta(data: DataSet) -> dict[str, Any]:
    facts = [dict(device) for device in data.devices]
    if len({canonical.encode(device) for device in facts}) > 1:
        raise InvalidData(f"{data.decision}: a log is about one device, and this data has {len(facts)}; split it first")
    ours = {name: value for name, value in facts[0].items() if name not in (_SHARED, _CAPABILITY)}
    return {
        **({"hardware": {**ours, _CAPABILITY: facts[0].get(_CAPABILITY)}} if ours else {}),
        "shared_memory": facts[0].get(_SHARED),
        "device_capa": _capability(facts[0].get(_CAPABILITY)),
        "name": data.decision,
        "numerical_features": [column.name for column in data.features if not column.is_word],
        "categorical_features": [column.name for column in data.features if column.is_word],
    }


def _capability(word: object) -> list[int] | None:
    if not isinstance(word, str) or not re.fullmatch(r"\d+(\.\d+)+", word):
        return None
    return [int(part) for part in word.split(".")]


def choice_word(config: Mapping[str, Any]) -> str:
    """Return a config as the one word such a log has for it: a plain choice as it is, others as `a=1_b=2`."""
    if set(config) == {CHOICE}:
        return str(config[CHOICE])
    return "_".join(f"{name}={value}" for name, value in config.items())
