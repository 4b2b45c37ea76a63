"""Custom ops: several implementations of one op, chosen by memory or a model, measured where that is asked for."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.errors import InvalidDecision
from tunewise.session.context import current_store

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._dynamo.utils import counters  # noqa: E402
from torch._inductor import config, select_algorithm  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402

from tunewise.deploy.inductor import backend, steering  # noqa: E402
from tunewise.deploy.inductor.custom import CustomDecision, custom_decision  # noqa: E402
from tunewise.deploy.inductor.custom_op import schema_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning")


def left(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.mm(torch.mm(a, b), c)


def right(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, torch.mm(b, c))


def wrong(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.mm(b, c)


def broken(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("this implementation is broken")


def sizes(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> dict[str, Any]:
    return {"n": a.shape[0], "last": c.shape[1], "dtype": str(a.dtype)}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    steering._reported.clear()
    with fresh_cache(), config.patch({"cpp.threads": 1}):
        yield
    tw.drop_heuristics()
    torch.set_num_threads(threads)
    torch._dynamo.reset()


@pytest.fixture
def chain(request: pytest.FixtureRequest) -> CustomDecision:
    name = "tunewise_test::" + request.node.name.removeprefix("test_")[:60]
    return custom_decision(name, {"left": left, "right": right, "wrong": wrong}, default="left", features=sizes)


ARGS = [torch.randn(size, generator=torch.Generator().manual_seed(7)) for size in ((256, 256), (256, 256), (256, 4))]


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """Compile a function as a new process would, and call it."""
    torch._dynamo.reset()
    counters.clear()
    return torch.compile(lambda *given: function(*given), dynamic=False)(*args)


def is_by(way: Callable[..., Any], result: Any) -> bool:
    return bool(torch.equal(result, way(*ARGS)))


def test_eager_code_is_tuned_and_remembers(chain: CustomDecision) -> None:
    assert is_by(left, chain(*ARGS))
    with tw.mode("tune"):
        chain(*ARGS)
    assert is_by(right, chain(*ARGS))
    assert chain.eager.explain(*ARGS).answer.rung == "memory"
    assert chain.decide(*ARGS).rung == "default"  # compiled code is another matter


def test_compiled_code_takes_the_default_where_nothing_is_known_and_measures_nothing(chain: CustomDecision) -> None:
    assert is_by(left, compiled(chain, *ARGS))
    assert not counters["inductor"]["select_algorithm_autotune"]
    assert current_store().subjects(chain.name) == []


def test_all_implementations_are_measured_checked_and_remembered_and_later_compiles_go_by_that(
    chain: CustomDecision,
) -> None:
    with tw.mode("tune"):
        assert is_by(right, compiled(chain, *ARGS))
    (subject,) = current_store().subjects(chain.name)
    assert dict(subject.problem) == {"n": 256, "last": 4, "dtype": "torch.float32"}
    outcomes = {trial.config["choice"]: trial.outcome for trial in current_store().trials(subject)}
    assert outcomes["wrong"].kind == "correctness"
    assert outcomes["left"].time_s > 0
    assert is_by(right, compiled(chain, *ARGS))
    assert counters["inductor"]["fxgraph_cache_miss"] == 1
    assert is_by(right, compiled(chain, *ARGS))
    assert counters["inductor"]["fxgraph_cache_hit"] == 1


def test_a_loaded_heuristic_steers_and_another_one_is_not_hidden_by_the_cache(chain: CustomDecision) -> None:
    for word, way in (("right", right), ("left", left)):
        tw.load_heuristic(tw.Heuristic(f"rule-{word}", chain.name, lambda features, word=word: [{"choice": word}]))
        assert is_by(way, compiled(chain, *ARGS))
    assert not counters["inductor"]["select_algorithm_autotune"]


def test_pins_and_modes_count_in_compiled_code(chain: CustomDecision) -> None:
    chain.decision.pin({"choice": "right"})
    select_algorithm.clear_preprocessing_fns()  # whoever clears the list, ours is there again
    assert is_by(right, compiled(chain, *ARGS))
    with tw.mode("off"):
        assert is_by(left, compiled(chain, *ARGS))


def test_our_own_backend_takes_them_and_measures_them_too(chain: CustomDecision) -> None:
    def ours(function: Callable[..., Any]) -> Any:
        torch._dynamo.reset()
        return torch.compile(lambda *given: function(*given), dynamic=False, backend=backend.tunewise)(*ARGS)

    assert is_by(left, ours(chain))
    with backend.inductor(mode="tune"):
        assert is_by(right, ours(chain))
    assert is_by(right, ours(chain))
    with backend.inductor(mode="off"):
        assert is_by(left, ours(chain))


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_views_and_dynamic_sizes_are_measured_as_they_are(is_dynamic: bool) -> None:
    name = f"tunewise_test::{'dynamic' if is_dynamic else 'views'}"
    chain = custom_decision(name, {"left": left, "right": right}, default="left", features=sizes)

    def turned(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return chain(a, b, c) if is_dynamic else chain(a.t(), b[:, 8:-8], c[8:-8])

    torch._dynamo.reset()
    with tw.mode("tune"):
        found = torch.compile(turned, dynamic=is_dynamic)(*ARGS)
    assert torch.allclose(found, turned(*ARGS), rtol=1e-3, atol=1e-2)
    (subject,) = current_store().subjects(name)
    assert {trial.config["choice"] for trial in current_store().trials(subject)} == {"left", "right"}
    assert current_store().verdicts(subject)[-1].ending != "failed"


def test_a_feature_function_that_raises_costs_one_warning_and_no_compile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ways = {"left": left, "right": right}
    chain = custom_decision("tunewise_test::no_features", ways, default="left", features=broken)
    with caplog.at_level(logging.WARNING, "tunewise"):
        for _ in range(2):
            assert is_by(left, compiled(lambda a, b, c: chain(a, b, c), *ARGS))
    warned = [one.getMessage() for one in caplog.records if one.name.startswith("tunewise")]
    assert len(warned) == 1
    assert "this implementation is broken" in warned[0]


def test_an_implementation_that_breaks_is_recorded_and_never_chosen() -> None:
    ways = {"left": left, "broken": broken, "turned": lambda a, b, c: torch.mm(c.t(), torch.mm(a, b).t()).t()}
    chain = custom_decision("tunewise_test::with_broken", ways, default="left", features=sizes)
    with tw.mode("tune"):
        assert is_by(left, compiled(chain, *ARGS))
    (subject,) = current_store().subjects(chain.name)
    outcomes = {trial.config["choice"]: trial.outcome for trial in current_store().trials(subject)}
    assert outcomes["broken"].kind == "compile"
    assert "RuntimeError: this implementation is broken" in outcomes["broken"].detail
    assert "strides (1, 256)" in outcomes["turned"].detail


def test_gradients_flow_through_compiled_code(chain: CustomDecision) -> None:
    a, b, c = (one.clone().requires_grad_() for one in ARGS)
    compiled(chain, a, b, c).sum().backward()
    found = [one.grad for one in (a, b, c)]
    wanted = torch.autograd.grad(left(a, b, c).sum(), (a, b, c))
    assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-3) for one, other in zip(found, wanted, strict=True))


def test_sizes_and_types_are_the_features_where_none_are_given(home: Path) -> None:
    scaled = custom_decision(
        "tunewise_test::scaled",
        {"plain": lambda x, scale=2.0: x * scale, "other": lambda x, scale=2.0: scale * x},
        default="plain",
    )
    scaled(torch.ones(3, 5), scale=4.0)
    assert scaled.decision.explain({"x0": 3, "x1": 5, "x_dtype": "float32", "scale": 4.0}).answer.rung == "default"
    asked = scaled.explain(torch.ones(3, 5), scale=4.0)
    assert "scale=4, x0=3, x1=5, x_dtype=float32" in str(asked)


def test_signatures_are_told_by_annotations_or_by_defaults() -> None:
    token = "str tunewise=''"
    by_defaults = schema_of("it", lambda x, n=3, on=True: x)
    assert by_defaults == f"(Tensor x, SymInt n=3, bool on=True, *, {token}) -> Tensor"
    assert schema_of("it", left) == f"(Tensor a, Tensor b, Tensor c, *, {token}) -> Tensor"
    assert schema_of("it", left, "(Tensor a, *, int n) -> Tensor") == f"(Tensor a, *, int n, {token}) -> Tensor"


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("plain_name", {}, "is not one of an op, such as 'mylib::softmax'"),
        ("mylib::bad-name", {}, "is not one of an op"),
        ("tunewise_test::a", {"default": "middle"}, "default='middle' is not one of left, right"),
        ("tunewise_test::b", {"schema": "Tensor"}, "is not a signature such as"),
    ],
)
def test_what_cannot_work_is_refused(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidDecision, match=said):
        custom_decision(name, {"left": left, "right": right}, **{"default": "left", **given})
