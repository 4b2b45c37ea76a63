"""The oracle: right results on several inputs, and one checked call that looks at everything a config leaves behind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tunewise import system
from tunewise.decision import Args, Config
from tunewise.measure import results
from tunewise.measure.work import Work

_PAGE_S = 5e-6  # what the first touch of a page costs at most, seen on a busy virtual machine


class UnsteadyResult(Exception):
    """The reference does not agree with itself."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One checked call: its seconds, the memory pages it was the first to touch, and what was wrong, if anything."""

    seconds: float
    new_pages: int
    reason: str | None

    @property
    def least_s(self) -> float:
        """The seconds without the price of first touching memory, which a second call does not pay."""
        return self.seconds - self.new_pages * _PAGE_S


class Oracle:
    """Knows the right results: what the reference (or the default) gives on every input, worked out once."""

    def __init__(self, work: Work, function_of: Callable[[Config], Callable[..., Any]]) -> None:
        self._work = work
        self._function_of = function_of
        self._inputs: list[Args] | None = None
        self._expected: list[tuple[Any, Args]] = []

    @property
    def count(self) -> int:
        """How many inputs results are checked on."""
        return len(self._known())

    @cached_property
    def changes_args(self) -> bool:
        """Whether a call changes its arguments, so that each timed call needs its own."""
        if self._work.writes:
            return False
        inputs = self._known()
        return bool(inputs) and not results.same(inputs[0], self._expected[0][1])

    def prepare(self) -> None:
        """Work out the right results now, so that nobody else's clock pays for it."""
        self._known()

    def launch(self, function: Callable[..., Any], which: int, clock: Callable[[], float]) -> Launch:
        """Call `function` once on guarded copies of one input; time it and look at everything it left behind."""
        inputs = self._known()
        args, bands = results.guarded(inputs[which]) if inputs else (self._work.args, [])
        if inputs:
            results.poison(args, self._work.writes)
            results.poison_memory(self._expected[which][0])
        pages = system.page_faults()
        start = clock()
        result = function(*args)
        seconds = max(clock() - start, 1e-9)
        pages = system.page_faults() - pages
        return Launch(seconds, pages, self._why_wrong(which, result, args, bands) if inputs else None)

    def _why_wrong(self, which: int, result: Any, args: Args, bands: list[Any]) -> str | None:
        expected, expected_args = self._expected[which]
        reason = results.difference(expected, result, self._work.check)
        if reason is not None:
            return f"the result {reason}{self._where(which)}"
        if results.broken(bands):
            return f"writes outside its arrays{self._where(which)}"
        return self._changed_argument(self._known()[which], expected_args, args, which)

    def _changed_argument(self, before: Args, expected: Args, after: Args, which: int) -> str | None:
        for place, (old, want, got) in enumerate(zip(before, expected, after, strict=True)):
            # What it writes into may hold the right result already, left by a timed call: no reason to expect its bits.
            exact = place not in self._work.writes and results.same(old, want)
            wrong = not results.same(want, got) if exact else results.difference(want, got, self._work.check)
            if wrong:
                return f"argument {place} {'is changed' if exact else wrong}{self._where(which)}"
        return None

    def _where(self, which: int) -> str:
        if which == 0:
            return ""
        given = 1 + len(self._work.inputs)
        if which < given:
            return f" (on check input {which})"
        return " (on shuffled or large values; if the arguments carry a promise, pass check=Check(variants=False))"

    def _known(self) -> list[Args]:
        if self._inputs is None:
            self._inputs = []
            if not self._work.check.is_on:
                return self._inputs
            for args in self._candidates():
                self._learn(args, is_required=not self._inputs)
        return self._inputs

    def _candidates(self) -> Iterator[Args]:
        yield self._work.args
        yield from self._work.inputs
        if self._work.check.variants:
            yield from results.variants(self._work.args)

    def _learn(self, args: Args, *, is_required: bool) -> None:
        """Keep an input if the reference runs on it and says the same thing twice."""
        assert self._inputs is not None
        try:
            first, after = self._reference(args)
            second, _ = self._reference(args)
            is_steady = results.difference(first, second, self._work.check) is None
        except Exception:
            if is_required:
                raise
            return
        if is_steady:
            self._inputs.append(args)
            self._expected.append((first, after))
        elif is_required:
            raise UnsteadyResult(
                "the right result differs from call to call, so nothing can be checked against it; "
                "pass check=Check(compare=...) or, if any result will do, check=NO_CHECK"
            )

    def _reference(self, args: Args) -> tuple[Any, Args]:
        function = self._work.check.reference or self._function_of(self._work.default)
        mine = results.copied(args)
        results.poison(mine, self._work.writes)
        result = function(*mine)
        return (results.copied((result,))[0], mine)
