"""What Inductor times becomes trials and a verdict, on a faked H100; the times are made up."""

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_fake_gpu import faked, graph, product  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402

from tunewise.decision import Failure, Timing  # noqa: E402
from tunewise.deploy.inductor import gpu_timings  # noqa: E402
from tunewise.deploy.inductor.gpu_choices import finalized  # noqa: E402
from tunewise.deploy.inductor.gpu_lists import choices_of  # noqa: E402
from tunewise.deploy.inductor.gpu_problems import DEFAULT, decision_for, hardware_of  # noqa: E402
from tunewise.deploy.inductor.steering import Steering, steered  # noqa: E402
from tunewise.formats.inductortable import config_of  # noqa: E402
from tunewise.session import context  # noqa: E402
from tunewise.settings import Mode  # noqa: E402


@pytest.fixture(autouse=True)
def h100() -> Iterator[None]:
    gpu_timings._reported.clear()
    with faked(), graph(), inductor_config.patch(max_autotune=True):
        yield
    decision_for.cache_clear()


@dataclass(frozen=True, eq=False)
class Caller:
    """What we read of Inductor's ChoiceCaller; one without a note is of a backend that we have no word for."""

    annotations: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Timed:
    """Inductor's inputs and choices for a product, and what a benchmark gives each."""

    inputs: Any
    choices: list[Any]
    timings: dict[Any, float]


def timed(best: int = 3, *, m: int = 1024, **more: float) -> Timed:
    """Return a product whose choice number `best` takes 0.25 ms, ATen 0.5 ms and all others 1 ms."""
    inputs = product(m, 1024, 1024)
    choices = choices_of("mm", inputs, fits=False)
    callers = [Caller({"ktc": choice}) for choice in choices]
    timings = dict.fromkeys(callers, 1.0)
    timings[callers[0]] = 0.5
    timings[callers[best]] = 0.25
    timings |= {Caller({}): time_ms for time_ms in more.values()}
    return Timed(inputs, choices, timings)


def save(one: Timed, mode: Mode | None = "tune", *more: Any) -> None:
    """Tell our saver what Inductor timed, as Inductor does, while something steers in a mode; None: nothing does."""
    with nullcontext() if mode is None else steered(Steering(mode=mode)):
        gpu_timings.save(one.timings, "mm", one.inputs.nodes(), list(one.timings), *more)


def subject_of(one: Timed) -> Any:
    decision = decision_for("mm", hardware_of(torch.device("cuda:0")))
    features = {"m": one.inputs.mnk_hinted()[0], "n": 1024, "k": 1024, "dtype": "bfloat16"}
    return decision.subject(decision.problem({**features, "dynamic": 0, "lhs": "rows", "rhs": "rows"}))


def trials(one: Timed) -> list[Any]:
    return context.current_store().trials(subject_of(one))


def test_every_choice_becomes_a_trial_and_the_fastest_wins() -> None:
    one = timed(best=3)
    save(one)
    (verdict,) = context.current_store().verdicts(subject_of(one))
    assert len(trials(one)) == 22
    assert verdict.winner == config_of("triton::mm", one.choices[3].params.to_kwargs())
    assert (verdict.ending, verdict.gain, verdict.evaluations) == ("win", 2.0, 22)
    assert trials(one)[0].outcome == Timing((0.0005,))
    assert subject_of(one).environment.must["hardware.name"] == "NVIDIA H100 80GB HBM3"


def test_what_was_measured_steers_from_then_on() -> None:
    one = timed(best=3)
    save(one)
    modes: tuple[Mode, ...] = ("tune", "use", "replay")
    for mode in modes:
        left = finalized(Steering(mode=mode), {"all": one.choices}, one.inputs, [], "mm")
        assert left == [one.choices[3], one.choices[0]]
    more = finalized(Steering(mode="use", top_k=2), {"all": one.choices}, one.inputs, [], "mm")
    assert more == [one.choices[3], one.choices[0]]  # the second best is ATen


def test_a_larger_space_than_was_measured_is_measured() -> None:
    one = timed()
    save(one)
    many = choices_of("mm", one.inputs, "EXHAUSTIVE", fits=False)
    assert finalized(Steering(mode="tune"), {"all": many}, one.inputs, [], "mm") == many
    assert len(finalized(Steering(mode="use"), {"all": many}, one.inputs, [], "mm")) == 2


def test_where_aten_is_the_fastest_it_is_a_tie_and_aten_alone_is_left() -> None:
    one = timed(best=0)
    save(one)
    (verdict,) = context.current_store().verdicts(subject_of(one))
    assert (verdict.ending, dict(verdict.winner)) == ("tie", dict(DEFAULT))
    assert finalized(Steering(mode="use"), {"all": one.choices}, one.inputs, [], "mm") == one.choices[:1]


def test_what_has_no_time_is_a_failure() -> None:
    one = timed(best=3)
    for caller in list(one.timings)[10:]:
        one.timings[caller] = inf
    save(one)
    outcomes = [trial.outcome for trial in trials(one)]
    assert sum(isinstance(outcome, Failure) and outcome.kind == "compile" for outcome in outcomes) == 12


def test_where_a_choice_we_have_no_word_for_is_the_fastest_memory_stays_silent() -> None:
    one = timed(best=3, cutlass=0.125)
    save(one)
    assert len(trials(one)) == 22
    assert context.current_store().verdicts(subject_of(one)) == []
    how = Steering(mode="use", wants_autotuning=True)
    assert finalized(how, {"all": one.choices}, one.inputs, [], "mm") == one.choices


def test_of_two_ways_to_call_aten_the_faster_one_counts() -> None:
    one = timed(best=3)
    one.timings[Caller({"ktc": one.choices[0]})] = 0.125  # as of addmm, which has two
    save(one)
    (verdict,) = context.current_store().verdicts(subject_of(one))
    assert (len(trials(one)), verdict.ending) == (22, "tie")
    assert trials(one)[0].outcome == Timing((0.000125,))


def test_what_inductor_reads_from_its_cache_is_not_counted_again() -> None:
    one = timed()
    save(one, "collect")
    save(one, "collect")
    assert len(trials(one)) == 22
    save(timed(best=4), "collect")
    assert len(trials(one)) == 24


def test_where_memory_has_answered_a_few_configs_timed_again_conclude_nothing() -> None:
    one = timed(best=3)
    save(one)
    few = dict(list(one.timings.items())[:4])
    save(replace(one, timings={caller: 2.0 - time_ms for caller, time_ms in few.items()}))
    assert len(trials(one)) == 22
    assert len(context.current_store().verdicts(subject_of(one))) == 1


def test_where_more_is_timed_than_before_that_is_kept_and_concludes() -> None:
    one = timed(best=3)
    few = dict(list(one.timings.items())[:2])
    save(replace(one, timings=few))
    save(one)
    assert len(trials(one)) == 22
    assert [verdict.ending for verdict in context.current_store().verdicts(subject_of(one))] == ["tie", "win"]


@pytest.mark.parametrize("mode", [None, "use", "off", "replay"])
def test_nothing_is_kept_where_nobody_measures_for_us(mode: Mode | None) -> None:
    one = timed()
    save(one, mode)
    assert trials(one) == []


@pytest.mark.parametrize("more", [(), (lambda: None,), (lambda: None, {}), (lambda: None, {}, "and more")])
def test_it_takes_the_arguments_of_any_torch(more: tuple[Any, ...]) -> None:
    one = timed()
    save(one, "collect", *more)
    assert len(trials(one)) == 22


def test_nothing_reaches_inductor_whatever_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    one = timed()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with steered(Steering(mode="tune")):
                gpu_timings.save({}, "mm", one.inputs.nodes(), [])
                gpu_timings.save({}, "mm", [1, 2], [])
                gpu_timings.save({}, "bmm", [], [])
                gpu_timings.save()
    assert sorted(record.message.partition(":")[0] for record in caplog.records) == [
        "what Inductor timed of bmm is not kept",
        "what Inductor timed of mm is not kept",
    ]
    assert trials(one) == []


def test_a_verdict_is_what_the_command_line_shows() -> None:
    one = timed(best=3)
    save(one)
    (decision,) = context.current_store().decisions()
    assert decision == "torch.cuda.mm"
    answer = decision_for("mm", hardware_of(torch.device("cuda:0"))).explain(subject_of(one).problem).answer
    assert (answer.rung, answer.config["kernel"]) == ("memory", "triton")
    assert "as Inductor timed 22 configs, results not compared" in answer.reason
