"""Decisions inside compiled regions: answered while they are traced, without graph breaks, and never measured."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tunewise as tw
from tunewise.session import context
from tunewise.session.recall import misses

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning")

POLICY = tw.Policy(isolation="none", min_sample_s=1e-5)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Let each test begin with nothing compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Scaled:
    """A decision over two ways to triple a tensor, and which of them were traced or run."""

    def __init__(self, **facts: Any) -> None:
        self.decision = tw.Decision(
            "scaled",
            space=tw.Space({"way": ["add", "mul"], "factor": [1, 2], "order": tw.permutation(["x", "y"])}),
            default={"way": "add", "factor": 1, "order": ("x", "y")},
            policy=POLICY,
            near=1,
            **{"features": lambda x, k=1: {"n": x.shape[0], "k": k, "dtype": str(x.dtype)}, **facts},
        )

        @self.decision.implementation
        def scaled(x: Any, k: int = 1, *, way: str, factor: int, order: tuple[str, str]) -> Any:
            if order[0] == "y":
                return x * 1000
            return (x + x + x if way == "add" else x * 3) * factor * k

        self.op = scaled

    def pin(self, n: int, **config: Any) -> None:
        self.decision.pin(config, n=n)


def compiled(function: Callable[..., Any], backend: str = "eager", **options: Any) -> Any:
    return torch.compile(function, backend=backend, fullgraph=True, **options)


class Graphs:
    """A backend that counts the graphs it is given."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.made.append(graph)
        return graph.forward


@pytest.mark.parametrize("dynamic", [False, True, None])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_answer_is_a_constant_of_the_one_graph(backend: str, dynamic: bool | None) -> None:
    it = Scaled()
    it.pin(4, factor=2)
    call = compiled(lambda x: it.op(x) + 1, backend, dynamic=dynamic)
    assert call(torch.ones(4)).tolist() == [7.0] * 4
    assert call(torch.ones(5)).tolist() == [4.0] * 5
    assert call(torch.ones(4)).tolist() == [7.0] * 4


def test_memory_answers_and_the_default_where_nothing_is_known() -> None:
    it = Scaled()
    tuned = it.op.tune(torch.ones(64)).answer
    graphs = Graphs()
    call = torch.compile(lambda x: it.op(x), backend=graphs, fullgraph=True)
    for n in (64, 65):
        assert torch.equal(call(torch.ones(n)), it.op(torch.ones(n)))
    assert it.decision.decide({"n": 64, "k": 1, "dtype": "torch.float32"}).config == tuned.config
    assert len(graphs.made) == 2


def test_a_problem_is_traced_once_and_another_one_anew() -> None:
    it, graphs = Scaled(), Graphs()
    call = torch.compile(lambda x: it.op(x), backend=graphs, fullgraph=True, dynamic=True)
    for n in (4, 4, 6, 4, 6):
        call(torch.ones(n))
    assert len(graphs.made) == 2


def test_two_problems_of_one_graph_have_their_own_answers() -> None:
    it = Scaled()
    it.pin(4, factor=2)
    call = compiled(lambda x, y: (it.op(x), it.op(y), it.op(x, k=2)))
    x, y, z = call(torch.ones(4), torch.ones(5))
    assert (x[0].item(), y[0].item(), z[0].item()) == (6.0, 3.0, 12.0)


def test_a_keyword_given_by_the_caller_beats_the_answer() -> None:
    it = Scaled()
    call = compiled(lambda x: it.op(x, factor=2))
    assert call(torch.ones(4))[0].item() == 6.0


def test_values_of_every_kind_reach_the_function() -> None:
    it = Scaled()
    it.pin(4, order=("y", "x"))
    assert compiled(lambda x: it.op(x))(torch.ones(4))[0].item() == 1000.0


def test_a_choice_between_functions_is_made_while_tracing() -> None:
    ways = {"double": lambda x: x * 2, "triple": lambda x: x * 3}
    either = tw.choice("either", ways, default="double", features=lambda x: {"n": x.shape[0]})
    either.decision.pin({"choice": "triple"}, n=4)
    call = compiled(lambda x: either(x))
    assert (call(torch.ones(4))[0].item(), call(torch.ones(5))[0].item()) == (3.0, 2.0)


def test_a_decision_may_be_asked_by_its_features_there() -> None:
    it = Scaled()
    it.pin(4, factor=2)

    def ask(x: Any) -> Any:
        answer = it.decision.decide({"n": x.shape[0]})
        return x * answer.config["factor"] if answer.rung == "pin" else x

    call = compiled(ask)
    assert (call(torch.ones(4))[0].item(), call(torch.ones(5))[0].item()) == (2.0, 1.0)


def test_a_module_and_its_gradient_go_through() -> None:
    it = Scaled()
    it.pin(4, factor=2)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> Any:
            return it.op(x * self.weight).sum()

    model = Model()
    compiled(model, "aot_eager")(torch.ones(4)).backward()
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [6.0] * 4


@pytest.mark.parametrize("options", [{}, {"thorough": True}, {"background": True}])
def test_nothing_is_measured_while_tracing_and_the_miss_is_counted(options: dict[str, bool]) -> None:
    it = Scaled()
    with tw.mode("tune", **options):
        compiled(lambda x: it.op(x))(torch.ones(4))
    assert context.current_store().subjects("scaled") == []
    tw.refresh()
    assert [(miss.problem["n"], miss.count) for miss in misses("scaled")] == [(4, 1)]


def test_what_is_tuned_later_counts_once_the_code_is_traced_again() -> None:
    it = Scaled()
    call = compiled(lambda x: it.op(x))
    call(torch.ones(4))
    it.pin(4, factor=2)
    assert call(torch.ones(4))[0].item() == 3.0
    torch._dynamo.reset()
    assert call(torch.ones(4))[0].item() == 6.0


def test_the_block_around_the_first_call_governs_it() -> None:
    it = Scaled()
    it.pin(4, factor=2)
    call = compiled(lambda x: it.op(x))
    with tw.mode("off"):
        assert call(torch.ones(4))[0].item() == 3.0


@pytest.mark.parametrize(("bucket", "graphs_made"), [([8, 64], 3), ("pow2", 5)])
def test_dynamic_code_is_compiled_once_for_a_whole_bucket(bucket: Any, graphs_made: int) -> None:
    it, graphs = Scaled(buckets={"n": bucket}), Graphs()
    it.pin(8, factor=2)
    call = torch.compile(lambda x: it.op(x), backend=graphs, fullgraph=True, dynamic=True)
    told = {n: call(torch.ones(n))[0].item() for n in (5, 6, 7, 8, 9, 12, 33, 50, 64, 100, 200)}
    assert [n for n, value in told.items() if value == 6.0] == [5, 6, 7, 8]
    assert len(graphs.made) <= graphs_made


def test_features_that_make_no_problem_are_told_by_name() -> None:
    it = Scaled(features=lambda x: {"n": None})
    with pytest.raises(Exception, match="scaled: feature n=None"):
        compiled(lambda x: it.op(x))(torch.ones(4))


def test_eager_calls_are_as_they_were() -> None:
    it = Scaled()
    with tw.mode("tune"):
        it.op(torch.ones(4))
    assert it.op.decide(torch.ones(4)).rung == "memory"
