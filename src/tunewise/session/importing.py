"""Others' files taken in: what they measured goes into the store, what they say won becomes tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path

from tunewise import settings
from tunewise.decision import Subject, Timing, Trial, canonical
from tunewise.decision.declaration import MAX_NAME
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats.facts import write_trial
from tunewise.formats.findings import Finding, problem_of, record_of, slug
from tunewise.formats.foreign import Foreign
from tunewise.formats.records import Record
from tunewise.heuristics.table import Table
from tunewise.heuristics.table_findings import findings_of, table_of
from tunewise.heuristics.table_reading import dump, load_table, parse
from tunewise.models.whole import write_whole
from tunewise.session import context
from tunewise.session.conflicts import Conflict, OnConflict, Side, settle
from tunewise.store import Store
from tunewise.store.locks import lock_file

_STORE, _TABLE = "the store", "the table at home"
_BATCH = 2000
_LOCK = "tables.lock"  # who holds it may change tables that were taken in


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What taking files in would do: the records it adds, the tables it writes, what is known and what conflicts.

    `before` holds those of the tables that were there when the plan was made: it does not stand once they changed.
    """

    records: tuple[Record, ...]
    tables: Mapping[Path, Table]
    known: int
    conflicts: tuple[Conflict, ...]
    before: Mapping[Path, Table]


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, its place among those given, and what it tells by the names we use."""

    file: Foreign
    rank: int
    findings: list[Finding]


@dataclass
class _Making:
    """A plan in the making."""

    rule: OnConflict
    records: list[Record] = field(default_factory=list)
    tables: dict[Path, Table] = field(default_factory=dict)
    known: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    before: dict[Path, Table] = field(default_factory=dict)


def plan_import(
    files: Sequence[Foreign],
    store: Store,
    *,
    decision: str | None = None,
    nearest: str | None = None,
    rename: Mapping[str, str] | None = None,
    on_conflict: OnConflict = "best",
) -> ImportPlan:
    """Return what taking files in would do; nothing is done yet.

    `decision` names the decision where a file does not, or instead of what it says; `rename` gives features and
    parameters other names; raises InvalidData for one that is not there. With `nearest`, a feature, the tables answer
    like vLLM. Two origins that tell different times of one config, or different winners, conflict: the `best` or the
    `newest` stands, or InvalidData is raised.
    """
    if nearest is not None and not any(file.format.tells_winners for file in files):
        raise InvalidData(f"nearest={nearest!r} is for tables, and none of these files tells what won; leave it out")
    check_names((one for file in files for one in file.findings), rename or {})
    sources = [
        _Source(file, rank, [_ours(one, file, decision, rename or {}) for one in file.findings])
        for rank, file in enumerate(files, 1)
    ]
    making = _Making(on_conflict)
    _plan_records(sources, store, making)
    _plan_tables(sources, nearest, making)
    conflicts = tuple(making.conflicts)
    return ImportPlan(tuple(making.records), making.tables, making.known, conflicts, making.before)


def carry_out(plan: ImportPlan, store: Store) -> int:
    """Do what a plan says and return how many records were added; done twice, the second time adds none.

    Raises InvalidData, and leaves the tables alone, where somebody else changed one since the plan was made.
    """
    added, rest = 0, iter(plan.records)
    while batch := list(islice(rest, _BATCH)):
        added += store.absorb(batch)
    if plan.tables:
        _write_tables(plan)
    context.refresh()
    return added


def table_path(decision: str, device: str) -> Path:
    """Return where the table of a decision and a device lies that was taken in: in the home, where it is looked for."""
    identity = canonical.digest([decision, device])[:8]
    return settings.current().home / "heuristics" / f"{slug(decision, device)}-{identity}.json"


def check_names(findings: Iterable[Finding], names: Mapping[str, str]) -> None:
    """Raise InvalidData if a name that is to be changed is neither a feature nor a parameter of any finding."""
    there = {name for finding in findings for name in (*finding.problem, *finding.config)} if names else set()
    for name in names:
        if name not in there:
            listed = ", ".join(sorted(there))
            raise InvalidData(f"there is no feature or parameter {name!r} to rename; there are {listed:.1000}")


def renamed(finding: Finding, names: Mapping[str, str]) -> Finding:
    """Return a finding whose features and parameters have other names; raises InvalidData where two become one."""
    features = {names.get(name, name): value for name, value in finding.problem.items()}
    config = {names.get(name, name): value for name, value in finding.config.items()}
    if len(features) < len(finding.problem) or len(config) < len(finding.config):
        raise InvalidData(f"renaming gives two features or two parameters of {finding.decision} one name")
    return replace(finding, problem=problem_of(features), config=config)


def _ours(finding: Finding, file: Foreign, decision: str | None, rename: Mapping[str, str]) -> Finding:
    name = decision or finding.decision
    if not name:
        raise InvalidData(f"{file.path} does not say which decision it is about; name it with --decision")
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidData(f"{name!r:.100} is no name of 1 to {MAX_NAME} characters; name a --decision that you declare")
    found = replace(finding, decision=name)
    return renamed(found, rename) if rename else found


def _plan_records(sources: Sequence[_Source], store: Store, making: _Making) -> None:
    """Plan to add what was measured; every config of every subject is settled by itself."""
    for subject, measured in _by_subject(sources):
        there = _by_config([(_STORE, 0, trial) for trial in store.trials(subject)])
        for config, sides in _by_config(measured).items():
            held = {write_trial(trial) for side in there.get(config, ()) for trial in side.told}
            fresh = _fresh(sides, held)
            making.known += sum(len(side.told) for side in sides) - sum(len(side.told) for side in fresh)
            if fresh:
                about = Conflict(subject.decision, subject.problem, config)
                chosen, conflicts = settle([*there.get(config, ()), *fresh], making.rule, about)
                making.conflicts += conflicts
                making.records += [Record(subject, trial) for trial in chosen.told if chosen.origin != _STORE]


def _by_subject(sources: Sequence[_Source]) -> Iterator[tuple[Subject, list[tuple[str, int, Trial]]]]:
    found: dict[str, tuple[Subject, list[tuple[str, int, Trial]]]] = {}
    for source in sources:
        for finding in source.findings:
            if finding.outcome is not None:
                record = record_of(finding, source.file.format.tool)
                assert isinstance(record.fact, Trial)
                _, trials = found.setdefault(record.subject.digest, (record.subject, []))
                trials.append((str(source.file.path), source.rank, record.fact))
    yield from found.values()


def _by_config(measured: Sequence[tuple[str, int, Trial]]) -> dict[str, list[Side[list[Trial]]]]:
    """Return what each origin measured of every config, by the config as people read it."""
    heaps: dict[str, dict[tuple[str, int], list[Trial]]] = {}
    for origin, rank, trial in measured:
        config = canonical.encode(dict(sorted(trial.config.items())))
        heaps.setdefault(config, {}).setdefault((origin, rank), []).append(trial)
    return {config: [_side(*origin, trials) for origin, trials in heap.items()] for config, heap in heaps.items()}


def _side(origin: str, rank: int, trials: list[Trial]) -> Side[list[Trial]]:
    times = [trial.outcome.time_s for trial in trials if isinstance(trial.outcome, Timing)]
    return Side(origin, trials, rank, min(times, default=inf), max(trial.at for trial in trials))


def _fresh(sides: Sequence[Side[list[Trial]]], held: set[bytes]) -> list[Side[list[Trial]]]:
    """Return the sides that tell what neither the store nor an earlier one does: a file given twice is no conflict."""
    kept: list[Side[list[Trial]]] = []
    known = [held]
    for side in sides:
        facts = {write_trial(trial) for trial in side.told}
        if not any(facts <= others for others in known):
            kept.append(side)
            known.append(facts)
    return kept


def _plan_tables(sources: Sequence[_Source], nearest: str | None, making: _Making) -> None:
    """Plan to write what won, as a table for each decision and device."""
    heaps: dict[Path, list[tuple[_Source, Finding]]] = {}
    for source in sources:
        for finding in source.findings if source.file.format.tells_winners else ():
            heaps.setdefault(table_path(finding.decision, finding.device), []).append((source, finding))
    for path, heap in heaps.items():
        before = _before(path)
        winners = _winners(before, heap, making)
        kept = before.nearest if before is not None else None
        kinds = sorted({f"{source.file.format.about}s" for source, _ in heap})
        about = before.about if before is not None else f"imported from {' and '.join(kinds)}"
        table = table_of(winners, nearest=nearest or kept, about=about)
        if before is None or (table.rules, table.nearest) != (before.rules, before.nearest):
            making.tables[path] = _bounded(table)
            making.before |= {path: before} if before is not None else {}


def _winners(before: Table | None, heap: Sequence[tuple[_Source, Finding]], making: _Making) -> list[Finding]:
    held, beyond = findings_of(before) if before is not None else ([], 0)
    if beyond:
        name = heap[0][1].decision
        raise InvalidData(f"the table of {name} at home was edited to hold ranges or sets; move it elsewhere first")
    stands = {finding.place: _claim(_TABLE, 0, finding) for finding in held}
    for source, finding in heap:
        new, old = _claim(str(source.file.path), source.rank, finding), stands.get(finding.place)
        if old is not None and old.told.config == finding.config:
            making.known += 1 if finding.outcome is None else 0  # with a time, it was counted as a record
            continue
        about = Conflict(finding.decision, finding.problem, "the winner")
        stands[finding.place], conflicts = settle([new] if old is None else [old, new], making.rule, about)
        making.conflicts += conflicts
    return [side.told for side in stands.values()]


def _claim(origin: str, rank: int, finding: Finding) -> Side[Finding]:
    return Side(origin, finding, rank, finding.time_s if finding.time_s is not None else inf, finding.at)


def _write_tables(plan: ImportPlan) -> None:
    home = next(iter(plan.tables)).parent
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_file(home / _LOCK).writer():
            _replace_tables(plan)
    except OSError as error:
        raise InvalidFile(f"{home} takes no tables: {error.strerror}; move what is there elsewhere") from None


def _replace_tables(plan: ImportPlan) -> None:
    for path in plan.tables:
        if _before(path) != plan.before.get(path):
            raise InvalidData(f"{path} was changed by somebody else meanwhile; import once more")
    for path, table in plan.tables.items():
        write_whole(path, dump(table))


def _before(path: Path) -> Table | None:
    """Return the table at a place; None only if there is none, for what cannot be read must not be replaced."""
    if not path.exists():
        return None
    try:
        return load_table(path)
    except InvalidFile as error:
        raise InvalidFile(f"{error}; repair it or move it elsewhere") from None


def _bounded(table: Table) -> Table:
    """Return a table that can be read again; raises InvalidData for one that is too much."""
    try:
        return parse(dump(table), f"the table of {table.decision} that would be written")
    except InvalidFile as error:
        raise InvalidData(f"{error}; cut the file, and name another --decision for each part") from None
