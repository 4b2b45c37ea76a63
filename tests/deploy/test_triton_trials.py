"""What Triton measured, as trials and verdicts in the store."""

import math
from typing import Any

import pytest
from triton_standins import Autotuner, Config, forty

from tunewise.decision import Failure, Problem, Timing
from tunewise.deploy.triton_kernel import kernel_of
from tunewise.deploy.triton_trials import Asked, Heard, keep, outcome_of
from tunewise.session import context

CONFIGS = forty()
KERNEL = kernel_of(Autotuner(CONFIGS))
ASKED = Asked("scale", KERNEL, Problem({"n": 64}), KERNEL.menu.default())


def heard(times_ms: dict[Config, Any], *, cache_hit: bool = False) -> Heard:
    best = min(times_ms, key=lambda config: times_ms[config])
    return Heard(KERNEL.jit, (64,), best, times_ms, cache_hit)


def test_milliseconds_become_seconds_in_their_order() -> None:
    assert outcome_of([2.0, 1.0, 4.0]) == Timing((0.002, 0.001, 0.004))
    assert outcome_of(2) == Timing((0.002,))


@pytest.mark.parametrize("timing", [math.inf, [math.inf] * 3, [math.nan, 1.0, 1.0], []])
def test_what_has_no_time_is_a_failure(timing: Any) -> None:
    outcome = outcome_of(timing)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "constraints"


def test_a_time_of_zero_is_a_failure_and_no_record() -> None:
    assert outcome_of([0.0, 0.0, 0.1]) == Failure("runtime", "the benchmark gives it 0 ms, which no launch takes")


def test_every_timing_and_every_failure_is_in_the_store() -> None:
    times = {config: [place + 1.0] * 3 for place, config in enumerate(CONFIGS)} | {CONFIGS[7]: [math.inf] * 3}
    assert keep(ASKED, heard(times)) == 40
    trials = context.current_store().trials(ASKED.subject)
    assert [trial.config for trial in trials] == [KERNEL.menu.config_of(config) for config in CONFIGS]
    assert [isinstance(trial.outcome, Failure) for trial in trials].count(True) == 1
    assert len({trial.run for trial in trials}) == 1


def test_a_faster_config_than_the_default_wins() -> None:
    keep(ASKED, heard({CONFIGS[0]: [3.0, 2.9, 3.1], CONFIGS[5]: [1.5, 1.4, 1.6]}))
    (verdict,) = context.current_store().verdicts(ASKED.subject)
    assert (verdict.ending, verdict.gain, verdict.evaluations) == ("win", 2.0, 2)
    assert verdict.winner == KERNEL.menu.config_of(CONFIGS[5])
    assert "2 of 40 configs" in verdict.detail


def test_the_default_that_is_fastest_is_a_tie() -> None:
    keep(ASKED, heard({CONFIGS[0]: [1.0], CONFIGS[5]: [1.5]}))
    (verdict,) = context.current_store().verdicts(ASKED.subject)
    assert (verdict.ending, verdict.winner) == ("tie", ASKED.default)


def test_where_nothing_ran_there_are_failures_and_no_verdict() -> None:
    assert keep(ASKED, heard({CONFIGS[0]: [math.inf], CONFIGS[5]: [math.inf]})) == 2
    assert context.current_store().verdicts(ASKED.subject) == []


def test_a_run_read_from_tritons_cache_is_not_stored_twice() -> None:
    times = {config: [1.0] for config in CONFIGS[:3]}
    keep(ASKED, heard(times))
    assert keep(ASKED, heard(times, cache_hit=True)) == 0
    assert len(context.current_store().trials(ASKED.subject)) == 3


def test_a_run_from_before_our_time_is_stored_when_triton_reads_it_from_its_cache() -> None:
    assert keep(ASKED, heard({config: [1.0] for config in CONFIGS[:3]}, cache_hit=True)) == 3
    assert len(context.current_store().verdicts(ASKED.subject)) == 1


def test_a_run_measured_again_adds_up() -> None:
    times = {config: [1.0] for config in CONFIGS[:3]}
    assert [keep(ASKED, heard(times)), keep(ASKED, heard(times))] == [3, 3]
    assert len(context.current_store().trials(ASKED.subject)) == 6
