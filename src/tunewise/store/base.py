"""What every store promises, and the values that maintenance gives back."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from tunewise.decision import Environment, Miss, Problem, Subject, Trial, Verdict
from tunewise.errors import StoreError
from tunewise.formats.records import Record

MAX_MISSES = 10_000  # kept a decision; beyond that the least asked, oldest one goes
MAX_SIGNS = 10_000  # kept in all; beyond that the oldest goes
SIGN_LIFE_S = 86_400.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process of this machine that has what others want."""

    pid: int
    name: str = ""
    is_stopped: bool = False  # as by Ctrl-Z or a debugger: it gives nothing back until it goes on

    def __str__(self) -> str:
        facts = ", ".join(filter(None, [self.name, "which is stopped" * self.is_stopped]))
        return f"process {self.pid} ({facts})" if facts else f"process {self.pid}"


class Flight(Protocol):
    """The right to be the only one who tunes a subject. As a context manager it waits until it is acquired.

    It ends with its holder, even one that is killed, and is not inherited by the holder's children.
    """

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s` (0: do not wait; None: no limit)."""

    def release(self) -> None:
        """Let the next one have it; harmless if it is not ours."""

    def holder(self) -> Holder | None:
        """Return the process of this machine that has it; None if nobody has, or that cannot be told."""
        return None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store holds, for people."""

    place: str  # path of its file, host and database, or "memory"
    schema: int
    trials: int
    verdicts: int
    subjects: int
    misses: int
    size_bytes: int
    decisions: Mapping[str, int] = field(default_factory=dict)  # name -> trials
    sqlite: str = ""  # version of the library, if it is a file
    postgres: str = ""  # version of the server, if there is one
    is_read_only: bool = False
    last_trial_at: float | None = None  # when what was added last was measured, in seconds since the epoch
    last_verdict_at: float | None = None
    trouble: str | None = None  # why new facts stay in memory, if they do
    layers: tuple["StoreInfo", ...] = ()


@dataclass(frozen=True, slots=True)
class Prune:
    """Which facts go: those that match every condition given. At least one must be."""

    decision: str | None = None
    before: float | None = None  # measured before this many seconds since the epoch
    where: Callable[[Subject], bool] | None = None  # such as `elsewhere(environment)`
    keep_answers: bool = False  # the verdicts that answers are read off stay, however old they are

    def __post_init__(self) -> None:
        if self.decision is None and self.before is None and self.where is None:
            raise StoreError("prune needs a decision, an age or an environment: without one everything would go")

    def takes(self, subject: Subject) -> bool:
        """Whether facts about a subject may go, their age apart."""
        return (self.decision is None or subject.decision == self.decision) and (
            self.where is None or self.where(subject)
        )

    @property
    def takes_misses(self) -> bool:
        """Whether the misses of a decision go: they have neither an age nor an environment that could be asked for."""
        return self.before is None and self.where is None and not self.keep_answers


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went, or would go."""

    trials: int
    verdicts: int
    misses: int = 0
    answers: int = 0  # problems that nothing answers from memory any more


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of life: what a process is at right now.

    It is no fact: it may be lost, is in no export, and goes after a day.
    """

    kind: str  # what it is about: "run", "ladder", "node", "plan" or "fleet"
    key: str  # who gives it; the latest of a kind and key is kept
    at: float  # seconds since the epoch
    body: Mapping[str, Any]  # plain values of JSON, 32 KiB at most


@dataclass(frozen=True, slots=True)
class Remembered:
    """A subject and its verdicts, oldest first; none where it was measured and never tuned."""

    subject: Subject
    verdicts: Sequence[Verdict]


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """The last rows of a list, and how many rows the whole list has."""

    rows: Sequence[_T]
    total: int  # what several layers know counts in each of them


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial and what it is about."""

    subject: Subject
    trial: Trial


class Store(Protocol):
    """Every trial ever measured, every verdict, and the problems that were asked in vain.

    Facts are added and never changed; `prune` alone removes them. Any number of threads and processes may read and
    write at once. What a method has accepted before it returns survives the death of the process; verdicts survive a
    power cut too. Facts belong to a subject by its digest: every part that must match is in it.
    """

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none; raises InvalidTrial if one holds a value no measurement can have."""

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added; empty if there are none."""

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append the verdict of a finished tuning run; it is on the disk when this returns."""

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first; empty if it was never tuned."""

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written: the parts that only warn may differ. None if nothing is known of it."""

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the `last` so many, in the order they were first seen.

        All subjects of a large store take long to read: whoever needs a few asks for `last`, `near` or `kin`.
        """

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by a factor of `ratio` at most, nearest first.

        At most `limit` of them, found by an index; where very many lie equally near, 1,024 are compared.
        """

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision, wherever they were measured, in no particular order.

        They are the `limit` nearest of those that differ in numbers and in the environment, and the `limit` seen last;
        so fewer than `limit` are all there are.
        """

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects, of those whose problem has the features `like`, at most `limit`.

        They come in the order they were first seen.
        """

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`.

        At most `limit`. Subjects come in the order they were first seen, the trials of each in the order they were
        added.
        """

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer; counts of one decision and problem add up."""

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem, because it has been tuned."""

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised.

        Doing it twice changes nothing. A problem that has been concluded here as it was asked stays settled.
        """

    def show(self, sign: Sign) -> None:
        """Put a sign of life in the place of the last one of its kind and key; raises InvalidData if it is too long."""

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first."""

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, not acquired yet."""

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject, for export and merging."""

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes, or with `dry_run` only count them."""

    def info(self) -> StoreInfo:
        """Return what the store holds."""

    def close(self) -> None:
        """Let go of files; harmless to call twice, and the next use opens them again."""


def elsewhere(environment: Environment) -> Callable[[Subject], bool]:
    """Return a condition for `Prune`: measured where a part that must match differs from `environment`.

    Only parts that `environment` names are compared, so a bare description of the hardware will do.
    """
    here = environment.must

    def is_elsewhere(subject: Subject) -> bool:
        there = subject.environment.must
        return any(there.get(name) != value for name, value in here.items())

    return is_elsewhere


def has_features(problem: Problem, like: Problem | None) -> bool:
    """Return whether a problem has all the features of another one; None has none."""
    return like is None or all(problem.get(name) == value for name, value in like.items())


def page_of(rows: Sequence[_T], limit: int | None) -> Page[_T]:
    """Return the last rows of a list, all of them without a limit."""
    return Page(rows if limit is None else rows[max(0, len(rows) - limit) :], len(rows))


def united(found: Sequence[Sequence[Remembered]]) -> list[Remembered]:
    """Return what several stores remember, each subject once: of one subject the verdicts of earlier lists first."""
    if sum(map(bool, found)) < 2:
        return [one for remembered in found for one in remembered]
    by_digest: dict[str, Remembered] = {}
    for one in chain.from_iterable(found):
        digest = one.subject.digest
        before = by_digest[digest].verdicts if digest in by_digest else ()
        by_digest[digest] = Remembered(one.subject, (*before, *one.verdicts))
    return list(by_digest.values())


def joined(pages: Sequence[Page[Remembered]], limit: int | None) -> Page[Remembered]:
    """Return the last rows of several pages, each subject once."""
    rows = united([page.rows for page in pages])
    return Page(page_of(rows, limit).rows, sum(page.total for page in pages))


def appended(pages: Sequence[Page[Measured]], limit: int | None) -> Page[Measured]:
    """Return the last rows of several pages, one after the other."""
    rows = [row for page in pages for row in page.rows]
    return Page(page_of(rows, limit).rows, sum(page.total for page in pages))
