"""Heuristics that misbehave: each is reported once by name, and tuning completes."""

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from seeded_runs import BEST, fates, proposals, rule, run

import tunewise as tw
from tunewise.decision import Config
from tunewise.heuristics import Case, Expert, Heuristic
from tunewise.session import asking
from tunewise.session.context import current_store


class Raising(Expert):
    name = "raising"

    def seeds(self, problem: Case) -> Sequence[Config]:
        raise RuntimeError("no idea")


class Exiting(Expert):
    name = "exiting"

    def seeds(self, problem: Case) -> Sequence[Config]:
        raise SystemExit(3)


class Hanging(Expert):
    name = "hanging"

    def seeds(self, problem: Case) -> Sequence[Config]:
        time.sleep(10)
        return []


class Flooding(Expert):
    name = "flooding"

    def seeds(self, problem: Case) -> Sequence[Config]:
        return [{"a": n % 10, "b": n // 1000} for n in range(10_000)]


class Babbling(Expert):
    name = "babbling"

    def seeds(self, problem: Case) -> Any:
        return 42


class Mutating(Expert):
    name = "mutating"

    def seeds(self, problem: Case) -> Sequence[Config]:
        problem["n"] = 99  # type: ignore[index]
        return [BEST]


class Deep(Expert):
    name = "deep"

    def seeds(self, problem: Case) -> Sequence[Config]:
        problem.default["a"] = 5  # type: ignore[index]
        return [BEST]


class Unspeakable(Expert):
    name = "unspeakable"

    def seeds(self, problem: Case) -> Sequence[Config]:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("not even that")

        raise Mute


class Trap(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        raise SystemExit(4)

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class Trapping(Expert):
    name = "trapping"

    def seeds(self, problem: Case) -> Sequence[Config]:
        return [Trap()]


class Mumbling(Expert):
    name = "mumbling"

    def seeds(self, problem: Case) -> Any:
        return [None]


class Greedy(Expert):
    name = "greedy"
    most = "all"  # type: ignore[assignment]

    def seeds(self, problem: Case) -> Sequence[Config]:
        return []


class Nowhere(Expert):
    name = "nowhere"
    hardware = "cpu"  # type: ignore[assignment]

    def seeds(self, problem: Case) -> Sequence[Config]:
        return []


@pytest.mark.parametrize(
    "kind",
    [
        *(Raising, Exiting, Hanging, Flooding, Babbling, Mutating, Deep),
        *(Unspeakable, Trapping, Mumbling, Greedy, Nowhere),
    ],
)
def test_a_heuristic_that_misbehaves_is_reported_once_and_tuning_completes(
    kind: type[Expert], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 0.2)
    for _ in range(3):
        result = run(kind(), rule(BEST, name="healthy"), budget=10)
        assert result.answer.config == BEST
        assert len([p for p in proposals(result) if p.by == kind.name]) <= 1
    assert [kind.name in record.message for record in caplog.records if record.levelno == logging.WARNING] == [True]


def test_of_two_heuristics_of_one_name_each_answers_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    class Namesake(Expert):
        name = "hasty"

        def seeds(self, problem: Case) -> Sequence[Config]:
            raise ValueError("of the second")

    raising = rule(name="hasty", seeds=lambda self, problem: 1 / 0)
    for _ in range(2):
        assert fates(run(raising, Namesake(), rule(BEST), budget=5)) == [("rule", "tried")]
    assert [record.message for record in caplog.records] == [
        "heuristic hasty broke with ZeroDivisionError: division by zero",
        "heuristic hasty broke with ValueError: of the second",
    ]


@pytest.mark.parametrize("name", ["\x1b[31m\nred", "\ud800", "n" * 100_000])
def test_names_that_cannot_be_printed_or_stored_are_written_out_short(name: str, tmp_path: Path) -> None:
    tw.configure(home=tmp_path)
    store = current_store()
    result = run(rule(BEST, name=name), budget=5, store=store)
    (subject,) = store.subjects("seeded")
    (kept,) = store.verdicts(subject)
    assert kept.proposals == proposals(result)
    (proposal,) = kept.proposals
    assert proposal.by.isprintable()
    assert len(proposal.by) <= 200


def test_what_is_kept_of_huge_seeds_is_short() -> None:
    huge = "x" * 1_000_000
    result = run(rule({"a": huge}, {huge: 1}, {"a": 10**4000}, name="huge"), budget=5)
    assert [fate for _, fate in fates(result)] == ["dropped", "dropped", "tried"]
    assert all(len(proposal.detail) < 1000 for proposal in proposals(result))


def test_a_ranking_without_end_is_read_as_far_as_needed() -> None:
    endless = Heuristic("endless", "seeded", lambda features: ({"a": n % 10} for n in itertools.count(1)))  # type: ignore[arg-type,return-value]
    assert endless.choose({}) == {"a": 1}
    assert len(proposals(run(endless, budget=5))) == 3


def test_garbage_among_the_seeds_is_dropped_one_by_one() -> None:
    result = run(rule(None, "x", {"a": None}, {1: 2}, {"a": object()}, {"a": float("nan")}, BEST), budget=10)
    assert fates(result)[-1] == ("rule", "tried")
    assert [fate for _, fate in fates(result)].count("dropped") >= 4
    assert result.answer.config == BEST


def test_moves_that_raise_are_reported_and_tuning_completes(caplog: pytest.LogCaptureFixture) -> None:
    class Stumbling(Expert):
        name = "stumbling"

        def seeds(self, problem: Case) -> Sequence[Config]:
            return []

        def neighbors(self, problem: Case, config: Config) -> Sequence[Config]:
            raise ValueError("lost")

    assert run(Stumbling(), budget=20).verdict is not None
    assert caplog.text.count("stumbling broke with ValueError: lost") == 1
