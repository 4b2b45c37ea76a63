"""The loop: everything measured is remembered, nothing twice, and the default yields neither to noise nor to wrecks."""

import random
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from tunewise.decision import (
    Check,
    Config,
    Declaration,
    Failure,
    Outcome,
    Policy,
    Problem,
    Space,
    Subject,
    Timing,
    Trial,
    detect,
    environment,
)
from tunewise.errors import InvalidSetting, MeasureWarning, NotFound
from tunewise.measure import Replay, Work
from tunewise.session.events import Building, Concluded, Evaluated, Event, Proposed, Started
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, tune
from tunewise.store import MemoryStore, Store

SPACE = Space({"a": list(range(10)), "b": list(range(10))})
DEFAULT = {"a": 0, "b": 0}


def valley(config: Config) -> Outcome:
    """One best config, (7, 3), and the default twice as slow."""
    distance = abs(int(config["a"]) - 7) + abs(int(config["b"]) - 3)  # type: ignore[arg-type]
    return Timing((1.0 + distance / 10,))


class Counting(Replay):
    """Replays a function of the config and counts who is measured for the first time."""

    def __init__(self, outcome: Callable[[Config], Outcome]) -> None:
        super().__init__(Trial(config, outcome(config)) for config in SPACE)
        self.firsts: Counter[tuple[int, int]] = Counter()
        self.samples: Counter[tuple[int, int]] = Counter()

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        self.firsts[_ab(config)] += 1
        self.samples[_ab(config)] += 1
        return super().first(config, best_s)

    def sample(self, config: Config, n: int) -> Outcome:
        self.samples[_ab(config)] += n
        return super().sample(config, n)


def _ab(config: Config) -> tuple[int, int]:
    return int(config["a"]), int(config["b"])  # type: ignore[arg-type]


def declaration(space: Space = SPACE, **facts: Any) -> Declaration:
    return Declaration("valley", space=space, default=DEFAULT, **facts)


def task(of: Declaration | None = None, **options: Any) -> Task:
    known = of or declaration()
    subject = Subject("valley", Problem({"n": 1}), (), environment(detect()))
    work = Work(lambda config: lambda: None, (), dict(known.default), known.check, policy=known.policy)
    return Task(known, subject, work, **options)


def run(
    outcome: Callable[[Config], Outcome] = valley,
    *,
    store: Store | None = None,
    job: Task | None = None,
    measurer: Counting | None = None,
    **plan: Any,
) -> Tuning:
    made = measurer or Counting(outcome)
    return tune(job or task(), Plan(**plan), store or MemoryStore(), lambda work: made)


def test_the_best_config_wins() -> None:
    result = run()
    assert result.answer.config == {"a": 7, "b": 3}
    assert result.answer.rung == "memory"
    assert result.verdict is not None
    assert result.verdict.ending == "win"
    assert result.verdict.gain == 2.0


def test_a_space_within_the_budget_is_tried_completely() -> None:
    measurer = Counting(valley)
    assert run(measurer=measurer, budget=100).measured == 100
    assert set(measurer.firsts.values()) == {1}


def test_the_budget_bounds_the_evaluations() -> None:
    measurer = Counting(valley)
    assert run(measurer=measurer, budget=23).evaluations == 23
    assert sum(measurer.firsts.values()) == 23


def test_local_search_needs_fewer_evaluations_than_the_space_has() -> None:
    result = run(budget=60, strategy="local")
    assert result.answer.config == {"a": 7, "b": 3}


def test_second_call_measures_nothing() -> None:
    store, measurer = MemoryStore(), Counting(valley)
    first = run(store=store, measurer=measurer)
    again = run(store=store, measurer=measurer)
    assert again.measured == 0
    assert again.answer == first.answer
    assert set(measurer.firsts.values()) == {1}


def test_again_goes_on_with_configs_it_has_not_seen() -> None:
    store, measurer = MemoryStore(), Counting(valley)
    run(store=store, measurer=measurer, budget=30)
    result = run(store=store, measurer=measurer, budget=30, again=True)
    assert result.measured == 29  # the default counts, and is known
    assert result.evaluations == 59
    assert max(measurer.firsts.values()) == 1
    assert len(store.verdicts(task().subject)) == 2


def test_nothing_beats_the_default_by_less_than_the_noise() -> None:
    result = run(lambda config: Timing((1.0 if _ab(config) == (0, 0) else 0.995,)))
    assert result.answer.config == DEFAULT
    assert result.verdict is not None
    assert result.verdict.ending == "tie"
    assert "tie" in result.answer.reason


def test_a_default_that_is_best_stays() -> None:
    result = run(lambda config: Timing((1.0 + sum(_ab(config)),)))
    assert result.answer.config == DEFAULT


def test_equal_winners_are_broken_by_the_order_of_the_space() -> None:
    for seed in range(5):
        result = run(lambda config: Timing((2.0 if _ab(config) == (0, 0) else 1.0,)), seed=seed)
        assert result.answer.config == {"a": 0, "b": 1}


def test_failures_are_recorded_and_the_search_goes_on() -> None:
    store = MemoryStore()
    result = run(lambda c: Failure("crash", "signal SIGSEGV") if _ab(c)[0] == 7 else valley(c), store=store)
    assert result.failures == {"crash": 10}
    assert result.answer.config == {"a": 6, "b": 3}
    kinds = [t.outcome.kind for t in store.trials(task().subject) if isinstance(t.outcome, Failure)]
    assert kinds == ["crash"] * 10


def test_when_all_others_fail_the_default_stays() -> None:
    result = run(lambda c: valley(c) if _ab(c) == (0, 0) else Failure("compile", "no"))
    assert result.answer.config == DEFAULT
    assert result.verdict is not None
    assert result.verdict.ending == "tie"


def test_a_default_that_fails_is_answered_with_a_warning_and_remembered() -> None:
    store = MemoryStore()
    with pytest.warns(MeasureWarning, match="valley: the default itself fails \\(crash: boom\\)"):
        result = run(lambda c: Failure("crash", "boom"), store=store)
    assert result.answer.config == DEFAULT
    assert result.verdict is not None
    assert result.verdict.ending == "failed"
    assert run(store=store).measured == 0


def test_again_tries_what_failed_before() -> None:
    store = MemoryStore()
    with pytest.warns(MeasureWarning):
        run(lambda c: Failure("crash", "boom"), store=store)
    result = run(store=store, again=True)
    assert result.answer.config == {"a": 7, "b": 3}
    assert result.measured == 100
    assert result.failures == {}


def test_the_failure_of_a_former_default_is_no_answer() -> None:
    store = MemoryStore()
    with pytest.warns(MeasureWarning):
        run(lambda c: Failure("crash", "boom") if _ab(c) == (0, 0) else valley(c), store=store)
    now = Declaration("valley", space=SPACE, default={"a": 1, "b": 1})
    result = run(lambda c: Failure("crash", "boom") if _ab(c) == (0, 0) else valley(c), store=store, job=task(now))
    assert result.answer.config == {"a": 7, "b": 3}


def test_with_a_reference_others_may_win_although_the_default_fails() -> None:
    job = task(declaration(check=Check(reference=lambda: None)))
    result = run(lambda c: Failure("crash", "boom") if _ab(c) == (0, 0) else valley(c), job=job)
    assert result.answer.config == {"a": 7, "b": 3}
    assert "the default itself fails (crash: boom)" in result.answer.reason
    assert result.answer.confidence is None


def test_with_a_reference_and_everything_failing_the_counts_are_named() -> None:
    job = task(declaration(check=Check(reference=lambda: None)))
    with pytest.warns(MeasureWarning, match="all 100 candidates failed \\(100 timeout\\); see: tunewise trials valley"):
        run(lambda c: Failure("timeout", "> 1 s"), job=job)


def test_a_winner_that_turns_out_wrong_gives_way_to_the_next() -> None:
    class Wrong(Counting):
        def verify(self, config: Config, repeats: int = 1) -> Failure | None:
            return Failure("correctness", "off by one") if _ab(config) == (7, 3) else None

    result = run(measurer=Wrong(valley))
    assert result.answer.config == {"a": 6, "b": 3}
    assert result.failures == {"correctness": 1}


def test_a_winner_that_breaks_in_the_final_gives_way_to_the_next() -> None:
    class Fragile(Counting):
        def pair(
            self, incumbent: Config, challenger: Config, turns: int | None = None
        ) -> tuple[float, float] | Failure:
            return Failure("crash", "late") if _ab(challenger) == (7, 3) else super().pair(incumbent, challenger)

    result = run(measurer=Fragile(valley))
    assert result.answer.config == {"a": 6, "b": 3}


def test_seeds_come_first_completed_from_the_default() -> None:
    seen: list[Event] = []
    run(seeds=[{"b": 5}, {"a": 4, "b": 4}], budget=10, strategy="random", listener=seen.append)
    tried = [(_ab(e.config), e.source) for e in seen if isinstance(e, Evaluated)]
    assert tried[:3] == [((0, 0), "default"), ((0, 5), "seed"), ((4, 4), "seed")]
    assert {source for _, source in tried[3:]} == {"random"}


def test_a_seed_out_of_range_is_clamped_and_an_unknown_parameter_is_dropped_with_the_reason() -> None:
    seen: list[Event] = []
    run(seeds=[{"a": 99}, {"c": 1}, "nonsense"], budget=5, listener=seen.append)
    assert [_ab(e.config) for e in seen if isinstance(e, Evaluated) and e.source == "seed"] == [(9, 0)]
    proposed = [p for e in seen if isinstance(e, Proposed) for p in e.proposals]
    assert [p.fate for p in proposed] == ["tried", "dropped", "dropped"]
    reasons = [p.detail for p in proposed[1:]]
    assert "unknown parameter 'c'" in reasons[0]
    assert "not str" in reasons[1]


def test_events_tell_the_run_from_start_to_end() -> None:
    seen: list[Event] = []
    run(budget=20, listener=seen.append)
    assert isinstance(seen[0], Started)
    assert isinstance(seen[-1], Concluded)
    done = [e.done for e in seen if isinstance(e, Evaluated)]
    assert done == list(range(1, 21))


def test_seconds_bound_the_search_and_still_give_a_verdict() -> None:
    result = run(budget=100, seconds=1e-9)
    assert result.verdict is not None
    assert result.evaluations < 100


def test_a_default_that_is_new_is_measured_even_when_there_is_no_time() -> None:
    store = MemoryStore()
    run(store=store, budget=1)
    now = Declaration("valley", space=SPACE, default={"a": 9, "b": 9})
    result = run(store=store, job=task(now), budget=1, seconds=1e-9, again=True)
    assert result.measured == 1


def test_collecting_drops_nobody() -> None:
    measurer = Counting(valley)
    run(measurer=measurer, measure_all=True)
    assert min(measurer.samples.values()) >= 5


def test_collecting_one_sample_of_each_needs_no_lap() -> None:
    with pytest.warns(MeasureWarning, match="steps=1 is too few"):
        single = Declaration("valley", space=SPACE, default={"a": 9, "b": 9}, policy=Policy(steps=1))
    measurer = Counting(valley)
    run(measurer=measurer, job=task(single), measure_all=True, budget=5)
    assert len(measurer.firsts) == 5


def test_configs_are_built_ahead_once_and_what_does_not_build_is_a_compile_failure() -> None:
    built: Counter[tuple[int, int]] = Counter()

    def build(config: Config) -> None:
        built[_ab(config)] += 1
        if _ab(config)[1] == 9:
            raise ValueError("no such register")

    seen: list[Event] = []
    result = run(job=task(build=build), listener=seen.append)
    assert set(built.values()) == {1}
    assert result.failures == {"compile": 10}
    assert any(isinstance(e, Building) for e in seen)


def test_adding_a_value_to_the_space_voids_nothing() -> None:
    store = MemoryStore()
    first = run(store=store)
    wider = Space({"a": list(range(11)), "b": list(range(10))})
    assert run(store=store, job=task(declaration(wider))).answer.config == first.answer.config


def test_a_winner_that_a_new_rule_forbids_is_measured_anew_from_what_is_known() -> None:
    store, measurer = MemoryStore(), Counting(valley)
    run(store=store, measurer=measurer)
    ruled = Space({"a": list(range(10)), "b": list(range(10))}, rules=["a != 7"])
    result = run(store=store, measurer=measurer, job=task(declaration(ruled)))
    assert result.answer.config == {"a": 6, "b": 3}
    assert set(measurer.firsts.values()) == {1}


@pytest.mark.parametrize(
    "plan",
    [
        *({"budget": value} for value in (0, 1.5, True, "5", None)),
        *({"seconds": value} for value in (0, -1, float("nan"), 10**400, "5", True, [1])),
        *({"wait_s": value} for value in (-1, float("nan"), 10**400, "5", True)),
        *({"seed": value} for value in (-1, 1.5, "5", None, True)),
        *({"strategy": value} for value in (["auto"], None)),
        *({"stop": None}, {"listener": "loud"}),
    ],
    ids=lambda plan: str(plan)[:30],
)
def test_a_plan_that_makes_no_sense_is_refused_by_name_before_anything_is_measured(plan: dict[str, Any]) -> None:
    measurer = Counting(valley)
    with pytest.raises(InvalidSetting, match=f"^{next(iter(plan))}=.* is not a "):
        run(measurer=measurer, **plan)
    assert not measurer.firsts


@pytest.mark.parametrize("plan", [{"seconds": float("inf")}, {"wait_s": 0}, {"wait_s": float("inf")}])
def test_a_plan_may_take_for_ever_and_wait_for_nobody(plan: dict[str, Any]) -> None:
    assert run(budget=3, **plan).evaluations == 3


def test_an_unknown_strategy_is_named_with_the_known_ones_before_anything_is_measured() -> None:
    measurer = Counting(valley)
    with pytest.raises(NotFound, match="strategy 'magic' is not one of auto, exhaustive, random, local"):
        run(strategy="magic", measurer=measurer)
    assert not measurer.firsts


class Interrupted(Exception):
    """Stands for a kill."""


def stopping_after(count: int) -> Callable[[Event], None]:
    left = [count]

    def listen(event: Event) -> None:
        if isinstance(event, Evaluated):
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted

    return listen


@pytest.mark.parametrize("point", sorted(random.Random(1).sample(range(1, 60), 12)))
def test_a_run_interrupted_anywhere_resumes_without_measuring_twice_and_ends_the_same(point: int) -> None:
    whole = run(budget=60, strategy="local", seed=3)
    store, measurer = MemoryStore(), Counting(valley)
    with pytest.raises(Interrupted):
        run(store=store, measurer=measurer, budget=60, strategy="local", seed=3, listener=stopping_after(point))
    resumed = run(store=store, measurer=measurer, budget=60, strategy="local", seed=3)
    assert max(measurer.firsts.values()) == 1
    assert resumed.evaluations == whole.evaluations == 60
    assert resumed.answer.config == whole.answer.config


def test_a_run_interrupted_again_and_again_still_ends_the_same() -> None:
    whole = run(budget=60, strategy="local", seed=3)
    store, measurer = MemoryStore(), Counting(valley)
    for _ in range(11):
        with pytest.raises(Interrupted):
            run(store=store, measurer=measurer, budget=60, strategy="local", seed=3, listener=stopping_after(5))
    resumed = run(store=store, measurer=measurer, budget=60, strategy="local", seed=3)
    assert max(measurer.firsts.values()) == 1
    assert resumed.answer.config == whole.answer.config


def test_a_seed_is_not_given_up_on_its_first_launch() -> None:
    limits: dict[tuple[int, int], float] = {}

    class Noting(Counting):
        def first(self, config: Config, best_s: float = inf) -> Outcome:
            limits[_ab(config)] = best_s
            return super().first(config, best_s)

    run(measurer=Noting(valley), seeds=[{"a": 9, "b": 9}], budget=10, strategy="random")
    assert limits.pop((9, 9)) == inf
    assert min(limits.values()) < inf
