"""Triton's autotuning cache, `<kernel>.autotune.json`: a key and the timings of every config that was tried for it."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import msgspec

from tunewise.decision import Failure, Outcome, Problem, Timing, Value
from tunewise.formats.findings import Finding, config_of, grouped, in_unit, problem_of, raw_value, slug
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

SUFFIX = ".autotune.json"
_MS = 1e-3
_KWARGS, _KEY = "kwargs", "key_"
# What a Triton config has beside the kernel's own parameters.
_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override", "minRegAutoWS", "maxRegAutoWS")
_NEVER = ("pre_hook",)  # a function, which no file holds: always null
_QUANTILES = 3
_MAX_SAMPLES = 100_000


class _Cache(msgspec.Struct, frozen=True):
    """The fields of a cache file."""

    configs_timings: list[tuple[dict[str, Any], Any]]
    key: Any = None


def read(content: Content) -> list[Finding]:
    """Return every config with its timings, which Triton writes as median, 20th and 80th percentile in milliseconds.

    Those three stand as samples in that order. What is Infinity failed: Triton does not say how. The values of the key
    are the features key_0, key_1 and so on; the decision is the kernel that the file is named after.
    """
    found = decode(content, _Cache)
    problem, kernel = _problem(found.key), content.path.name
    for suffix in (".gz", SUFFIX, ".json"):
        kernel = kernel.removesuffix(suffix)
    return [
        Finding(kernel, problem, _config(config, number), _outcome(timings, number))
        for number, (config, timings) in enumerate(found.configs_timings, 1)
    ]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a file for every problem, each of which Triton keeps in a directory of its own."""
    groups = grouped(findings, "decision", "problem", "device", "versions")
    return [_written(group, number if len(groups) > 1 else 0) for number, group in enumerate(groups, 1)]


def _written(group: Sequence[Finding], number: int) -> Written:
    problem = group[0].problem
    timings = [[_raw_config(finding), _raw_timings(finding.outcome)] for finding in group]
    name = f"{slug(group[0].decision, str(number or ''))}{SUFFIX}"
    return Written(name, json_text({"key": [problem[name] for name in _in_order(problem)], "configs_timings": timings}))


def _problem(key: Any) -> Problem:
    values = [] if key is None else key if isinstance(key, list) else [key]
    return problem_of({f"{_KEY}{place}": _plain(value) for place, value in enumerate(values)})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict | None) else value


def _in_order(problem: Problem) -> list[str]:
    """Return the features by their place in a key; those of other origin, which have none, by name."""
    places = [name.removeprefix(_KEY) for name in problem]
    is_key = all(name.startswith(_KEY) for name in problem) and all(place.isdecimal() for place in places)
    return sorted(problem, key=lambda name: int(name.removeprefix(_KEY))) if is_key else list(problem)


def _config(raw: Mapping[str, Any], number: int) -> dict[str, Value]:
    place = f"config {number}"
    kwargs = raw.get(_KWARGS, {})
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"{place}: its {_KWARGS} are not an object")
    # An option that is null is one nobody set, and no parameter of the kernel's.
    options = {name: value for name, value in raw.items() if name not in (_KWARGS, *_NEVER) and value is not None}
    both = sorted(set(kwargs) & {*options, *_OPTIONS, *_NEVER})
    if both:
        raise ValueError(f"{place}: {both[0]!r:.100} is an option of Triton and cannot be a parameter")
    return config_of({**kwargs, **options}, place)


def _raw_config(finding: Finding) -> dict[str, Any]:
    options = {n: raw_value(value) for n, value in finding.config.items() if n in _OPTIONS and value is not None}
    kwargs = {name: raw_value(value) for name, value in finding.config.items() if name not in _OPTIONS}
    return {_KWARGS: kwargs, **options, "pre_hook": None}


def _outcome(timings: Any, number: int) -> Outcome:
    samples = timings if isinstance(timings, list) else [timings]
    if not 0 < len(samples) <= _MAX_SAMPLES:
        raise ValueError(f"config {number} has {len(samples)} timings")
    if any(sample is None for sample in samples):  # Infinity, which JSON does not have: it lacks resources
        return Failure("constraints", "Infinity")
    if not all(type(sample) in (int, float) and 0 < sample < inf for sample in samples):
        raise ValueError(f"config {number}: {samples!r:.100} are not milliseconds")
    return Timing(tuple(sample * _MS for sample in samples))


def _raw_timings(outcome: Outcome | None) -> list[float]:
    if isinstance(outcome, Timing):
        return [in_unit(sample, _MS) for sample in outcome.samples_s]
    return [inf] * _QUANTILES
