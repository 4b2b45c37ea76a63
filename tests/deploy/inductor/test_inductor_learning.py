"""What products teach: both operations together, and only where the code is compiled alike."""

import pytest

from tunewise import models
from tunewise.decision import detect
from tunewise.deploy.inductor import learning, problems
from tunewise.models import Card, Columns, Leaf, Model, Number, Tree

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'tunewise[learn]'")


def model(decision: str, cpu: str) -> Model:
    return Model(
        card=Card(decision=decision, fence={"hardware.name": cpu}),
        choices=(problems.ATEN,),
        columns=Columns((Number("m", 1.0, 100.0),)),
        body=Tree((Leaf((0,), support=3),)),
    )


def test_a_model_of_this_cpu_is_for_its_vector_unit_threads_and_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")
    fence = learning.fenced(model("torch.bmm", detect("cpu").name), threads=3).card.fence
    assert fence["threads"] == 3
    assert {"isa", "library.torch"} <= set(fence)


@pytest.mark.parametrize("given", [model("torch.bmm", "another CPU"), model("torch.cuda.mm", "another CPU")])
def test_a_model_of_another_machine_stays_as_it_is(given: models.Model) -> None:
    assert learning.fenced(given, threads=1) is given


def test_blocks_that_would_copy_a_factor_on_every_call_are_no_candidates() -> None:
    block = {"kernel": "block", "reg_m": 6, "reg_n": 16}
    given = {"n": 216, "rhs": "rows"}
    assert not problems.is_offered(block, given, variants=True)
    assert not problems.is_offered(block, {"n": 208, "rhs": "columns"}, variants=True)
    assert problems.is_offered(block, {"n": 208, "rhs": "rows"}, variants=True)
    assert problems.is_offered(block, {**given, "rhs": "weight"}, variants=True)
    assert problems.is_offered(problems.CPP, given, variants=False)
