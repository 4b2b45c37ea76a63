"""T4 results, the auto-tuning community's common format: configs with their runtimes or why they are invalid."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from tunewise.decision import FAILURE_KINDS, Failure
from tunewise.formats.recording import Recording, Row, Spelling, number, recording, timed, times
from tunewise.formats.torn import Content, decode

_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(
        ("ms", "millisecond", "milliseconds", "milisecond", "miliseconds"), 1e-3
    ),  # as the schema spells it
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
}
FINE = ("correct", "", "none")


class _Result(msgspec.Struct, frozen=True):
    """The fields of a result that a recording needs."""

    configuration: dict[str, Any]
    times: dict[str, Any] = {}
    invalidity: str | None = None
    measurements: list[dict[str, Any]] = []
    objectives: list[str] = []


class _File(msgspec.Struct, frozen=True):
    """The fields of a file that a recording needs."""

    results: list[_Result]
    metadata: dict[str, Any] = {}


def read(content: Content, name: str) -> tuple[Recording, ...]:
    """Return the recording of a T4 file; times without a unit are milliseconds, as everybody writes them."""
    found = decode(content, _File)
    unit_s = seconds_in(found.metadata.get("timeunit") or "ms")
    spelling: dict[str, Spelling] = defaultdict(Spelling)
    rows = [_row(result, unit_s, spelling) for result in found.results]
    return (
        recording(
            name,
            rows,
            kernel=word_of(found.metadata, "kernel_name", "kernel", "benchmark"),
            device=word_of(found.metadata, "device_name", "device", "hardware"),
            remark=f"the file ends early; {len(rows)} configs were read" if content.is_cut else "",
        ),
    )


def _row(result: _Result, unit_s: float, spelling: Mapping[str, Spelling]) -> Row:
    config = {name: spelling[name](value) for name, value in result.configuration.items()}
    word = (result.invalidity or "").lower()
    if word not in FINE:
        kinds = [kind for kind in FAILURE_KINDS if kind == word]
        return Row(config, Failure(kinds[0] if kinds else "runtime", word))
    samples_s = times(result.times.get("runtimes"), unit_s)
    time_s = measured_s(result.measurements, unit_s)
    if time_s is None and not samples_s:
        return Row(config, Failure("runtime", "recorded without a time"))
    compiling = number(result.times.get("compilation"))
    mean_s = sum(samples_s) / len(samples_s) if time_s is None else time_s
    return Row(config, timed(mean_s, None if compiling is None else compiling * unit_s), samples_s)


def measured_s(measurements: object, unit_s: float) -> float | None:
    """Return the measurement called `time`, which is what tuners compare, or None if there is none."""
    for measurement in measurements if isinstance(measurements, list) else ():
        if isinstance(measurement, Mapping) and measurement.get("name") == "time":
            value = number(measurement.get("value"))
            if value is not None:
                return value * (seconds_in(measurement["unit"]) if measurement.get("unit") else unit_s)
    return None


def seconds_in(unit: object) -> float:
    """Return how many seconds a unit of time is; raises ValueError for a word that is none."""
    if str(unit).lower() not in _UNITS:
        raise ValueError(f"the time unit {unit!r:.100} is not one of {', '.join(sorted(_UNITS))}")
    return _UNITS[str(unit).lower()]


def word_of(metadata: Mapping[str, Any], *names: str) -> str:
    """Return the first of some fields that is a text: the schema leaves open what they are called."""
    return next((metadata[name] for name in names if isinstance(metadata.get(name), str)), "")
