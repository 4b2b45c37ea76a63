import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import CASES

from limits import HANG_S
from tunewise import errors

SAMPLED = 28


@pytest.fixture(autouse=True, scope="module")
def home(tmp_path_factory):
    """One home for all tests of this file: what one of them compiled, the next need not."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("TUNEWISE_HOME", str(home))
        yield home


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def check_all(case, configs):
    for args, right in case.problems(seed=0):
        for config in configs:
            wrong = case.why_wrong(case.function(*args, **config), right)
            assert wrong is None, f"{config} on {[arg.shape for arg in args]}: {wrong}"


def test_every_config_of_a_sample_agrees_with_numpy(case):
    assert len(case.shapes) >= 20
    check_all(case, case.sample(SAMPLED))


@pytest.mark.full
def test_every_way_to_compile_agrees_with_numpy(case):
    check_all(case, case.every_build())


def run_fenced(case, count):
    script = Path(__file__).parent / "fenced.py"
    done = subprocess.run(
        [sys.executable, str(script), case.module, str(count), "1"], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == 2 * len(case.shapes) * (count + 1)


def test_no_config_of_a_sample_touches_memory_beyond_its_arrays(case):
    run_fenced(case, SAMPLED)


@pytest.mark.full
def test_no_config_touches_memory_beyond_its_arrays(case):
    run_fenced(case, 300 if case.decision.space.count() > 300 else case.decision.space.count() - 1)


def test_space_has_at_least_a_hundred_configs_and_the_default(case):
    assert case.decision.space.count() >= 100
    assert case.decision.default in case.decision.space


def test_calls_with_other_sizes_do_not_disturb_each_other(case):
    """Buffers that are kept from call to call grow and shrink in use."""
    config = dict(case.decision.default)
    problems = list(case.problems(seed=4))
    for args, right in [*problems, *reversed(problems)]:
        assert case.why_wrong(case.function(*args, **config), right) is None


def test_threads_may_call_at_once(case):
    """C runs without Python's lock, so buffers that are kept must not be shared."""
    config = dict(case.decision.default)
    problems = list(case.problems(seed=4)) * 20

    def why_wrong(problem):
        args, right = problem
        return case.why_wrong(case.function(*args, **config), right)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(why_wrong, problems)) == {None}


def test_inputs_are_the_problem_and_depend_on_the_seed_alone(case):
    decision = case.decision
    problem = decision.problem(decision.features(*next(case.problems(seed=0))[0]))
    first, again, other = (decision.inputs(problem, seed) for seed in (5, 5, 6))
    assert decision.problem(decision.features(*first)) == problem
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_check_inputs_are_ones_the_default_gets_right(case):
    decision = case.decision
    problem = decision.problem(decision.features(*next(case.problems(seed=0))[0]))
    inputs = decision.check.inputs(problem)
    assert len(inputs) >= 6
    for args in inputs:
        right = case.reference(*(arg.astype(np.float64) for arg in args))
        assert case.why_wrong(case.function(*args, **decision.default), right) is None


def test_derived_features_can_be_computed_for_every_config(case):
    decision = case.decision
    problem = decision.problem(decision.features(*next(case.problems(seed=0))[0]))
    for config in decision.space.sample(20, seed=2):
        assert set(decision.derive(problem, config)) == set(problem) | set(decision.derived)


def test_unknown_word_for_a_parameter_does_not_compile(case):
    config = dict(case.decision.default)
    word = next(name for name, value in config.items() if isinstance(value, str))
    with pytest.raises(errors.BuildError, match=rf"{word.upper()} must be"):
        case.kernel.build(case.defines({**config, word: "other"}))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("gemm", [(2, 3), (4, 5)]),
        ("gemm", [(2,), (2, 2)]),
        ("conv2d", [(2, 2), (3, 1)]),
        ("conv2d", [(2, 2), (0, 1)]),
        ("softmax", [(3,)]),
    ],
)
def test_shapes_that_do_not_fit_are_one_clear_sentence(name, shapes):
    case = CASES[name]
    args = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(errors.InvalidProblem, match=r"\("):
        case.function(*args, **case.decision.default)


def test_product_over_no_elements_is_zero():
    case = CASES["gemm"]
    result = case.function(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), **case.decision.default)
    assert result.tolist() == [[0.0] * 3] * 2


def test_softmax_treats_infinities_and_nan_as_numpy_does():
    case = CASES["softmax"]
    x = np.random.default_rng(0).standard_normal((7, 150), np.float32)
    x[0, 3], x[1, :], x[2, 5], x[3, 0], x[4, :140] = -np.inf, -np.inf, np.nan, np.inf, -np.inf
    x[5], x[6, 149] = 1e4 * x[5], -np.inf
    with np.errstate(invalid="ignore"):
        right = case.reference(x.astype(np.float64))
    for config in case.sample(SAMPLED):
        np.testing.assert_allclose(case.function(x, **config), right, rtol=1e-5, atol=1e-30)


def test_softmax_of_a_long_row_keeps_its_digits():
    case = CASES["softmax"]
    x = np.random.default_rng(0).standard_normal((1, 200_001), np.float32)
    right = case.reference(x.astype(np.float64))
    for config in case.sample(SAMPLED):
        np.testing.assert_allclose(case.function(x, **config), right, rtol=2e-6)
