"""Trials as a data set: from our exports and from a store, with the facts of the hardware they were measured on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Config, Feature, Problem, Scalar, Subject, Timing, Trial, Verdict, canonical
from tunewise.errors import InvalidData
from tunewise.formats import records
from tunewise.formats.building import NO_ROWS, columns_of, merged_rows
from tunewise.formats.dataset import TIMED, DataSet, Numbers, Rows, status_of
from tunewise.formats.malformed import Loaded
from tunewise.formats.recording import plain
from tunewise.formats.records import Record
from tunewise.formats.torn import opened

Derive = Callable[[Problem], Mapping[str, Feature]]
FACTS = ("hardware.", "policy.")  # of the key, what may travel with a data set; the rest may name files
DIGEST = "environment.digest"
_MOST_MET = 10_000


@dataclass
class _Heap:
    """Trials of one decision as they come, by number."""

    subjects: list[Subject] = field(default_factory=list)
    configs: list[Config] = field(default_factory=list)
    problem: list[int] = field(default_factory=list)
    config: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    samples_s: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    default: Config | None = None
    _subject_numbers: dict[str, int] = field(default_factory=dict)
    _config_numbers: dict[str, int] = field(default_factory=dict)
    _last: tuple[Subject | None, int] = (None, 0)
    _met: dict[int, tuple[Config, int]] = field(default_factory=dict)  # by identity: a reader may share its configs

    def add(self, subject: Subject, trial: Trial) -> None:
        """Take a trial in."""
        outcome = trial.outcome
        self.problem.append(self._subject(subject))
        self.config.append(self._config(trial.config))
        if isinstance(outcome, Timing):
            self.status.append(TIMED)
            self.samples_s.extend(outcome.samples_s)
        else:
            self.status.append(status_of(outcome.kind))
        self.starts.append(len(self.samples_s))

    def _subject(self, subject: Subject) -> int:
        if subject is not self._last[0]:
            number = self._subject_numbers.setdefault(subject.digest, len(self.subjects))
            if number == len(self.subjects):
                self.subjects.append(subject)
            self._last = (subject, number)
        return self._last[1]

    def _config(self, config: Config) -> int:
        met = self._met.get(id(config))
        if met is None:
            if len(self._met) >= _MOST_MET:
                self._met.clear()
            met = self._met[id(config)] = (config, self._number(config))  # kept, so that no other gets its identity
        return met[1]

    def _number(self, config: Config) -> int:
        scalars = scalar_config(config)
        number = self._config_numbers.setdefault(canonical.encode(scalars), len(self.configs))
        if number == len(self.configs):
            self.configs.append(scalars)
        return number


def scalar_config(config: Config) -> dict[str, Scalar]:
    """Return a config with every value a number or a word; lists become their JSON."""
    return {name: plain(value) for name, value in config.items()}


def read(path: Path, decision: str | None = None) -> Loaded:
    """Return the trials of an export as data; raises InvalidData where it is about several decisions and none is named.

    Damaged records count as malformed.
    """
    tally = records.Tally()
    with opened(path) as stream:
        data = data_of(records.read(stream, tally), decision, where=str(path))
    return Loaded(data, tally.damaged + tally.refused)


def data_of(
    found: Iterable[Record], decision: str | None = None, *, derive: Derive | None = None, where: str = "the store"
) -> DataSet:
    """Return the trials among some records as a data set; `derive` adds features to those of a problem.

    `decision` picks those of one where there are several, and names the data set.

    One problem measured in two environments is two problems with equal features. What was measured with other features
    or parameters than the latest trial is left out and counted in `notes` as outdated: the declaration has changed
    since. The default is the incumbent of the latest verdict.
    """
    heaps: dict[str, _Heap] = {}
    for record in found:
        heap = heaps.setdefault(record.subject.decision, _Heap())
        if isinstance(record.fact, Verdict):
            heap.default = record.fact.incumbent
        else:
            heap.add(record.subject, record.fact)
    measured = {name: heap for name, heap in heaps.items() if heap.problem}
    if not measured:
        of_it = f" of {decision!r}" if decision is not None else ""
        raise InvalidData(f"{where} holds no trial{of_it}; collect some with: tunewise collect")
    name = decision if decision in measured or len(measured) > 1 else next(iter(measured))
    if name not in measured:
        raise InvalidData(f"{where} is about {', '.join(sorted(measured))}; name one of them with --decision")
    return _data(decision or name, measured[name], derive)


def _data(decision: str, heap: _Heap, derive: Derive | None) -> DataSet:
    problems = [dict(derive(s.problem) if derive is not None else s.problem) for s in heap.subjects]
    names, params = set(problems[heap.problem[-1]]), set(heap.configs[heap.config[-1]])
    problem, config = np.array(heap.problem), np.array(heap.config)
    fits = np.array([set(features) == names for features in problems])[problem]
    fits &= np.array([set(known) == params for known in heap.configs])[config]
    status = np.array(heap.status, dtype=np.int8)
    every = Rows(problem, config, status, np.array(heap.samples_s, dtype=np.float64), np.array(heap.starts))
    rows = every.take(np.flatnonzero(fits))
    used, problem = np.unique(rows.problem, return_inverse=True)
    used_configs, config = np.unique(rows.config, return_inverse=True)
    devices, device = _devices([heap.subjects[number] for number in used])
    data = DataSet(
        decision,
        columns_of([problems[number] for number in used]),
        tuple(heap.configs[number] for number in used_configs),
        NO_ROWS,
        devices=devices,
        device=device,
    )
    notes = {"outdated": int((~fits).sum())} if not fits.all() else {}
    rows = replace(rows, problem=problem, config=config)
    return _with_default(merged_rows(data, rows, notes, is_log=True), heap.default)


def _devices(subjects: Sequence[Subject]) -> tuple[tuple[Mapping[str, Any], ...], Numbers]:
    """Return the devices and for every subject the number of its own.

    One device with another library or source is told apart by a digest of all that must match: times from before and
    after a change do not compare.
    """
    facts = [{n: v for n, v in subject.parts.items() if n.startswith(FACTS)} for subject in subjects]
    whole = [canonical.digest({**dict(subject.policy), **subject.environment.must}) for subject in subjects]
    environments: dict[str, set[str]] = {}
    for told, digest in zip(facts, whole, strict=True):
        environments.setdefault(canonical.encode(told), set()).add(digest)
    devices: dict[str, Mapping[str, Any]] = {}
    for told, digest in zip(facts, whole, strict=True):
        is_alone = len(environments[canonical.encode(told)]) == 1
        devices.setdefault(digest, told if is_alone else {**told, DIGEST: digest[:16]})
    places = {digest: number for number, digest in enumerate(devices)}
    return tuple(devices.values()), np.array([places[digest] for digest in whole], dtype=np.int64)


def _with_default(data: DataSet, default: Config | None) -> DataSet:
    if default is None:
        return data
    try:
        return data.with_default(scalar_config(default))
    except InvalidData:  # never measured, or of an older space
        return data
