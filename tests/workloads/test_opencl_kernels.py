"""The OpenCL kernels that come with tunewise: right for any size, in every config that a device can run."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_cases import CASES

from tunewise.decision import Config, Failure
from tunewise.measure.isolated import Isolated
from tunewise.session import Decision
from tunewise.workloads import find, names

pytestmark = pytest.mark.usefixtures("pocl")

# One config for every branch of a source that a preprocessor takes, none of them a default.
CORNERS: dict[str, list[Config]] = {
    "opencl-gemm": [
        {"wg_m": 2, "wg_n": 4, "tm": 6, "tn": 3, "vec": 2, "local": True, "tk": 8},
        {"wg_m": 1, "wg_n": 2, "tm": 2, "tn": 2, "vec": 1, "local": False, "tk": 8},
    ],
    "opencl-conv2d": [
        {"wg_x": 4, "wg_y": 2, "ty": 2, "vec": 8, "local": True, "filter_constant": False, "fixed": 5},
        {"wg_x": 2, "wg_y": 1, "ty": 4, "vec": 1, "local": False, "filter_constant": True, "fixed": 0},
    ],
    "opencl-softmax": [
        {"wg": 8, "vec": 8, "passes": 2, "native": True},
        {"wg": 1, "vec": 1, "passes": 3, "native": False},
        {"wg": 32, "vec": 2, "passes": 2, "native": False},
    ],
}


def failures(name: str, configs: list[Config]) -> list[Failure]:
    """Check configs in a worker, on the decision's own inputs and on all shapes that the C kernels are tried on."""
    decision, case = find(name), CASES[name.removeprefix("opencl-")]
    shapes = [args for args, _ in case.problems(seed=0)]
    task = decision.bound().task(*shapes[0])
    work = task.work.__class__(**{**vars(task.work), "inputs": (*task.work.inputs, *shapes[1:])})
    with Isolated(work) as measurer:
        found = [measurer.verify(config) for config in configs]
    return [failure for failure in found if failure is not None]


@pytest.mark.parametrize("name", names(backend="opencl"))
def test_every_branch_of_a_kernel_is_right_on_ragged_sizes(name: str) -> None:
    assert failures(name, [find(name).default, *CORNERS[name]]) == []


@pytest.mark.full
@pytest.mark.parametrize("name", names(backend="opencl"))
def test_configs_are_right_or_beyond_the_device(name: str) -> None:
    found = failures(name, find(name).space.sample(60, 1))
    assert {failure.kind for failure in found} <= {"constraints"}


@pytest.mark.parametrize("name", names(backend="opencl"))
def test_the_reference_agrees_with_the_c_kernels(name: str) -> None:
    decision, case = find(name), CASES[name.removeprefix("opencl-")]
    reference: Callable[..., Any] | None = decision.check.reference
    assert reference is not None
    for args, right in itertools.islice(case.problems(seed=1), 6):
        np.testing.assert_allclose(reference(*args), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", names(backend="opencl"))
def test_a_space_holds_at_least_a_hundred_configs_and_the_corners(name: str) -> None:
    decision: Decision = find(name)
    assert decision.space.count() >= 100
    assert all(config in decision.space for config in CORNERS[name])
