"""Decisions inside regions that Inductor compiles, by itself and under our backend."""

import pytest

import tunewise as tw

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = [pytest.mark.usefixtures("inductor_cache"), pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("backend", ["inductor", "tunewise"])
def test_the_way_that_is_known_best_is_compiled_into_one_graph(backend: str) -> None:
    ways = {"double": lambda x: x * 2, "triple": lambda x: x * 3}
    either = tw.choice("either.inductor", ways, default="double", features=lambda x: {"n": x.shape[0]})
    either.decision.pin({"choice": "triple"}, n=4)
    torch._dynamo.reset()
    call = torch.compile(lambda x: either(x) + 1, backend=backend, fullgraph=True)
    assert call(torch.ones(4)).tolist() == [4.0] * 4
    assert call(torch.ones(5)).tolist() == [3.0] * 5
