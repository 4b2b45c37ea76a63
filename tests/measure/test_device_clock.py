"""The clock that a device keeps: what a call reports is what it took, whatever else happened meanwhile."""

import time
from collections.abc import Callable
from typing import Any

from tunewise.decision import Config, Failure, Policy, Timing
from tunewise.measure.bench import Bench
from tunewise.measure.clocks import DEVICE
from tunewise.measure.work import Work


def reporting(seconds: float) -> Callable[[], int]:
    def call() -> int:
        time.sleep(1e-4)  # copies, queues and the like: on no device
        if seconds:
            DEVICE.add(seconds)
        return 7

    return call


def bench(**policy: Any) -> Bench:
    def prepare(config: Config) -> Callable[[], int]:
        seconds = config["seconds"]
        assert isinstance(seconds, float)
        return reporting(seconds)

    return Bench(Work(prepare, (), {"seconds": 0.5}, policy=Policy(clock="device", **policy)))


def test_samples_are_what_the_device_reports() -> None:
    outcome = bench().sample({"seconds": 0.25}, 3)
    assert outcome == Timing((0.25, 0.25, 0.25))


def test_a_pair_is_compared_by_what_the_device_reports() -> None:
    assert bench().pair({"seconds": 0.5}, {"seconds": 0.125}) == (0.5, 0.125)


def test_short_work_is_repeated_until_the_device_has_worked_long_enough() -> None:
    table, before = bench(min_sample_s=2.0**-10), DEVICE()
    table.first({"seconds": 2.0**-14})
    assert DEVICE() - before >= 2.0**-10


def test_compile_time_is_the_wall_clocks() -> None:
    outcome = bench().first({"seconds": 3600.0})
    assert isinstance(outcome, Timing)
    assert outcome.compile_s is not None
    assert outcome.compile_s < 3600


def test_work_that_reports_nothing_is_a_failure_that_says_so() -> None:
    outcome = bench().first({"seconds": 0.0})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "runtime"
    assert "reported no work of a device" in outcome.detail
