"""The oracle: what is compared to the last bit, and what within the tolerance."""

import time
from typing import Any

import numpy as np

from tunewise.decision import Config
from tunewise.measure.oracle import Oracle
from tunewise.measure.work import Work


def doubles_into(error: float) -> Any:
    def run(x: Any, out: Any) -> None:
        out[...] = 2 * x * np.float32(1 + error)

    return run


def reason(error: float) -> str | None:
    """Return what is said of a result that is off by a relative error, after a timed call has left the right one."""
    x = np.arange(1, 9, dtype=np.float32)
    work = Work(lambda config: doubles_into(0.0), (x, np.zeros_like(x)), {}, writes=(1,))

    def function_of(config: Config) -> Any:
        return work.prepare(config)

    oracle = Oracle(work, function_of)
    oracle.prepare()
    function_of({})(*work.args)
    return oracle.launch(doubles_into(error), 0, time.perf_counter).reason


def test_what_is_written_into_an_argument_has_a_tolerance_although_the_right_result_was_there_before() -> None:
    assert reason(3e-7) is None


def test_a_wrong_result_in_an_argument_is_told_with_its_place() -> None:
    assert str(reason(0.5)).startswith("argument 1 is wrong in 8 of 8 elements, first at (0,): ")
