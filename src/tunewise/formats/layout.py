"""Which column of a table holds what: features, parameters, samples and their unit, from names given or the header."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tunewise.decision import CHOICE
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats.units import UNITS_S, unit_s

_SAMPLE = re.compile(r"(?:t\d+|time|runtime|latency|perf|samples)(?:_(s|ms|us|ns))?")
_SUFFIX = re.compile(r".*_(s|ms|us|ns)")
_WIDE = re.compile(r"(.+)_r(\d+)")
_OTHER_MARKS = ";\t|"  # between cells, in files that are no CSV
_SHOWN = 300  # characters of a header in an error
_FEATURE, _PARAM = "f_", "p_"
_FACT = ("hardware.", "policy.", "environment.")
# What is known of a row besides its problem, config and samples; never a feature and never a parameter.
_TELLING = frozenset({"cfg", "ok", "failure", "is_default", "decision", "unit"})
_ASIDE = _TELLING | {"pid", "compile_s", "inner", "device"}


@dataclass(frozen=True, slots=True)
class Naming:
    """Columns by name, where a header does not speak for itself; what is left empty is told by the header."""

    problem: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table by what they hold.

    `features`, `params` and `facts` map names to columns. A `shape` such as 64x32 is split into d0, d1 and so on. In a
    wide table `wide` maps each choice to its columns of samples.
    """

    features: Mapping[str, str]
    params: Mapping[str, str]
    samples: tuple[str, ...]
    unit_s: float | None = None  # None: nobody says, so it is seconds unless a column of the sheet does
    shape: str | None = None
    wide: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    aside: frozenset[str] = frozenset()

    @property
    def all_samples(self) -> tuple[str, ...]:
        """Every column that holds samples."""
        return self.samples or tuple(name for columns in self.wide.values() for name in columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is worth reading."""
        shape = (self.shape,) if self.shape is not None else ()
        named = (*self.features.values(), *shape, *self.params.values(), *self.all_samples, *self.facts.values())
        return (*dict.fromkeys(named), *sorted(self.aside - set(named)))


def layout(header: Sequence[str], naming: Naming, file: str) -> Layout:
    """Return what the columns of a header hold; raises InvalidFile where neither it nor the names given tell."""
    _check_header(header, naming, file)
    wide = _wide(header) if not (naming.config or naming.samples) else {}
    samples = naming.samples or (() if wide else _samples(header))
    spoken_for = {*samples, *naming.problem, *naming.config}
    features, shape = _features(header, naming)
    params = {} if wide else _params(header, naming, spoken_for | set(features.values()))
    if not (features or shape) or not (params or wide) or not (samples or wide):
        raise InvalidFile(_untold(header, file, bool(features or shape), bool(params or wide)))
    facts = {name: name for name in header if name.startswith(_FACT) and name not in spoken_for}
    if "device" in header and not facts and "device" not in spoken_for:
        facts = {"hardware.name": "device"}
    return Layout(
        features,
        params,
        tuple(samples),
        _unit_s(samples, naming.unit, file),
        shape,
        wide,
        facts,
        frozenset(_TELLING & set(header)) - spoken_for,
    )


def _check_header(header: Sequence[str], naming: Naming, file: str) -> None:
    twice = sorted({name for name in header if header.count(name) > 1}) if len(set(header)) < len(header) else []
    if twice:
        raise InvalidFile(f"{file} has two columns named {twice[0]!r}; rename one")
    for name in (*naming.problem, *naming.config, *naming.samples):
        if name not in header:
            raise InvalidFile(f"{file} has no column {name!r}; it has {_shown(header)}")
    several = [n for n in naming.samples if n in (*naming.problem, *naming.config)]
    several += [n for n in naming.problem if n in naming.config]
    if several:
        raise InvalidData(f"the column {several[0]!r} is named for two things; name it once")


def _wide(header: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the choices of a wide table with their columns of samples, in order of the rounds; empty if it is none."""
    found = _rounds(header)
    return {} if len(found) < 2 or CHOICE in header or _samples(header) else found


def _rounds(header: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return columns such as c0_r0 and c0_r1 by what comes before the number of the round, in order of the rounds."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name in header:
        parts = _WIDE.fullmatch(name)
        if parts and not name.startswith((_FEATURE, _PARAM, *_FACT)):
            found.setdefault(parts[1], []).append((int(parts[2]), name))
    return {choice: tuple(name for _, name in sorted(columns)) for choice, columns in found.items()}


def _samples(header: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in header if _SAMPLE.fullmatch(name))


def _features(header: Sequence[str], naming: Naming) -> tuple[dict[str, str], str | None]:
    if naming.problem:
        shape = "shape" if "shape" in naming.problem else None
        return {name: name for name in naming.problem if name != shape}, shape
    features = {name.removeprefix(_FEATURE): name for name in header if name.startswith(_FEATURE) and name != _FEATURE}
    return features, "shape" if "shape" in header and "shape" not in features else None


def _params(header: Sequence[str], naming: Naming, spoken_for: set[str]) -> dict[str, str]:
    """Return the parameters: those given, those marked, the choice, or of numbered configs all that is left."""
    if naming.config:
        return {name: name for name in naming.config}
    marked = {name.removeprefix(_PARAM): name for name in header if name.startswith(_PARAM) and name != _PARAM}
    if marked:
        return {param: name for param, name in marked.items() if name not in spoken_for}
    if CHOICE in header:
        return {CHOICE: CHOICE}
    if "cfg" not in header:
        return {}
    left = [n for n in header if n not in _ASIDE | spoken_for | {"shape"} and not n.startswith((_FEATURE, *_FACT))]
    return {name: name for name in left} or {CHOICE: "cfg"}


def _unit_s(samples: Sequence[str], given: str | None, file: str) -> float | None:
    """Return the one unit of all samples in seconds, None where nothing tells; raises InvalidData for two of them."""
    ends = [suffix for suffix in (_SUFFIX.fullmatch(name) for name in samples) if suffix]
    units = {suffix[1] for suffix in ends} | ({given} if given is not None else set())
    if units and len(ends) < len(samples) and given is None:
        units.add("s")  # what does not name its unit is in seconds
    for unit in units:
        unit_s(unit)
    if len(units) > 1:
        raise InvalidData(f"{file} mixes the units {' and '.join(sorted(units))}; give all samples in one unit")
    return UNITS_S[units.pop()] if units else None


def _untold(header: Sequence[str], file: str, has_features: bool, has_params: bool) -> str:
    if len(header) == 1 and any(mark in header[0] for mark in _OTHER_MARKS):
        return f"{file} has one column, {header[0]!r}; put commas between its cells"
    if has_features and not has_params and not _samples(header) and len(rounds := _rounds(header)) == 1:
        choice, columns = next(iter(rounds.items()))
        return f"{file} has samples of one config only, {choice} ({_shown(columns)}); add those of a second one"
    lacks = "features" if not has_features else "configs" if not has_params else "samples"
    return (
        f"{file} does not show which of its columns are {lacks} ({_shown(header)}); name them: "
        "--problem m,n --config tile --samples t0,t1 --unit ms"
    )


def _shown(header: Sequence[str]) -> str:
    names = ", ".join(header)
    return names if len(names) <= _SHOWN else f"{names[:_SHOWN]}..."
