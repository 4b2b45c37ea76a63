"""Thorough runs and runs that are stopped: what is measured, what is concluded, and what the next run does."""

from collections.abc import Callable
from typing import Any

import pytest
from loops import IN_PROCESS, burn

import tunewise as tw
from tunewise.session import context, on_call
from tunewise.session.events import Evaluated, Event
from tunewise.session.recall import misses, trials, winners

SPACE = 12


def declared(runs: list[int]) -> tw.Implementation:
    decision = tw.Decision(
        "steps",
        space=tw.Space({"steps": list(range(1, SPACE + 1))}),
        default={"steps": SPACE},
        features=lambda n: {"n": n},
        policy=IN_PROCESS,
        check=tw.NO_CHECK,
    )

    @decision.implementation
    def work(n: int, *, steps: int) -> None:
        runs.append(steps)
        burn(steps)

    return work


def after(evaluations: int) -> tuple[Callable[[], bool], Callable[[Event], None]]:
    """Return somebody who listens, and wants to go on after so many evaluations."""
    seen: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, Evaluated):
            seen.append(event)

    return lambda: len(seen) >= evaluations, listen


def tried() -> list[Any]:
    return [m.trial.config["steps"] for m in trials("steps") if m.trial.source not in ("race", "check", "final")]


def test_thorough_measures_the_whole_space_whatever_the_budget() -> None:
    work = declared([])
    assert work.tune(1, budget=2, thorough=True).measured == SPACE
    assert sorted(tried()) == list(range(1, SPACE + 1))


def test_a_seed_that_is_the_default_takes_no_place_of_another_config() -> None:
    work = declared([])
    assert work.tune(1, seeds=[{"steps": SPACE}], thorough=True).measured == SPACE
    assert work.tune(2, seeds=[{"steps": SPACE}], budget=5).measured == 5


def test_thorough_after_a_usual_run_measures_only_the_rest() -> None:
    work = declared([])
    first = work.tune(1, budget=5).measured
    assert work.tune(1, thorough=True).measured == SPACE - first
    assert sorted(tried()) == list(range(1, SPACE + 1))


def test_a_second_thorough_run_measures_nothing() -> None:
    work = declared([])
    work.tune(1, thorough=True)
    tw.configure()
    assert work.tune(1, thorough=True).measured == 0


def test_a_thorough_block_tunes_once_what_is_remembered_already() -> None:
    runs: list[int] = []
    work = declared(runs)
    work.tune(1, budget=3)
    with tw.mode("tune", thorough=True):
        work(1)
        assert len(set(tried())) == SPACE
        runs.clear()
        work(1)
        work(1)
    assert len(runs) == 2


def test_a_run_that_is_stopped_concludes_nothing_and_gives_the_best_so_far() -> None:
    work = declared([])
    stop, listener = after(4)
    tuning = work.tune(1, stop=stop, listener=listener, strategy="exhaustive")
    assert tuning.is_stopped
    assert tuning.measured == 4
    assert tuning.answer.config["steps"] in sorted(tried())[:2]  # a hasty race: next to the best is good enough
    assert "stopped" in tuning.answer.reason
    assert winners("steps") == []
    assert work.decide(1).rung == "default"


def test_the_next_run_goes_on_and_measures_nothing_again() -> None:
    work = declared([])
    stop, listener = after(4)
    work.tune(1, stop=stop, listener=listener, thorough=True)
    tw.configure()
    assert work.tune(1, thorough=True).measured == SPACE - 4
    assert sorted(tried()) == list(range(1, SPACE + 1))
    assert len({verdict.verdict.run for verdict in winners("steps")} | {m.trial.run for m in trials("steps")}) == 1


@pytest.mark.parametrize("hit", [SPACE, 2])  # the default, and another
def test_a_config_that_fails_while_the_run_is_stopped_is_tried_again_by_the_next(hit: int) -> None:
    pressed: list[int] = []

    def work(n: int, *, steps: int) -> int:
        if steps == hit and not pressed:
            pressed.append(steps)  # Ctrl-C, which reaches the compiler that the config runs
            raise RuntimeError("the compiler was killed")
        return n

    run = declared([]).decision.implementation(work)
    tuning = run.tune(1, stop=lambda: bool(pressed), thorough=True)
    assert tuning.is_stopped
    store = context.current_store()
    assert hit not in [trial.config["steps"] for about in store.subjects("steps") for trial in store.trials(about)]
    assert not [verdict for about in store.subjects("steps") for verdict in store.verdicts(about)]
    pressed.append(0)
    run.tune(1, thorough=True)
    assert sorted(set(tried())) == list(range(1, SPACE + 1))
    assert not [m for m in trials("steps") if isinstance(m.trial.outcome, tw.Failure)]


def test_a_stop_that_comes_when_the_search_is_over_changes_nothing() -> None:
    work = declared([])
    stop, listener = after(SPACE)
    tuning = work.tune(1, stop=stop, listener=listener, thorough=True)
    assert not tuning.is_stopped
    assert len(winners("steps")) == 1


def test_a_miss_stays_until_a_run_is_not_stopped() -> None:
    work = declared([])
    work(1)
    stop, listener = after(2)
    work.tune(1, stop=stop, listener=listener)
    assert [miss.problem for miss in misses("steps")] == [tw.Problem({"n": 1})]
    work.tune(1)
    assert misses("steps") == []


@pytest.fixture
def allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have spent nothing yet."""
    monkeypatch.setattr(on_call._spent, "seconds", 0.0)


@pytest.mark.usefixtures("allowance")
def test_a_spent_allowance_tunes_nothing_more_and_answers_go_on() -> None:
    runs: list[int] = []
    work = declared(runs)
    with tw.mode("tune", total_seconds=1e-3):
        work(1)  # the first spends it all
        begun = tried()
        runs.clear()
        for n in (1, 2, 3, 2):
            work(n)
    assert tried() == begun
    assert len(runs) == 4
    assert winners("steps") == []  # what an allowance ended is not over
    assert work.tune(1).measured > 0


@pytest.mark.usefixtures("allowance")
def test_an_allowance_counts_over_decisions_and_blocks_of_one_process() -> None:
    work = declared([])
    with tw.mode("tune", total_seconds=1e-3):
        work(1)
    with tw.mode("tune", total_seconds=2e-3):
        work(2)
    assert {s.problem["n"] for s in context.current_store().subjects("steps")} == {1}
    with tw.mode("tune"):
        work(2)
    assert work.decide(2).rung == "memory"
