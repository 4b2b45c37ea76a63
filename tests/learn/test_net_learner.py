"""The net's learner: what it loses on problems it has not seen, and that use needs no PyTorch."""

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiled import tiled

from tunewise.errors import MissingPart
from tunewise.learn.net import NetLearner, Prepared, _guesses
from tunewise.learn.options import Training
from tunewise.learn.pairs import pairs
from tunewise.learn.split import by_problem
from tunewise.learn.validate import validate
from tunewise.models import Model, Net, load, save

KNOWN, HELD_OUT = by_problem(tiled(40), 0.3, seed=1)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


class QuickNet(NetLearner):
    """The same with fewer steps."""

    steps = 300


@pytest.fixture(scope="module")
def model() -> Model:
    return QuickNet().fit(KNOWN, Training())


@needs_torch
def test_a_net_ranks_problems_it_has_not_seen(model: Model) -> None:
    found = validate(model, HELD_OUT)
    assert found.top[3] < 1.1
    assert found.default_regret is not None
    assert found.regret.geomean < found.default_regret.geomean


@needs_torch
def test_training_and_use_see_the_same_numbers(model: Model) -> None:
    assert isinstance(model.body, Net)
    table = pairs(HELD_OUT, Training(), 10**6)
    trained = _guesses(model.body, Prepared(model.columns, model.body.scales), table)
    served = [model.body.guess(model.columns.row(list(values))) for values in table.values]
    assert np.abs(trained - np.array(served)).max() < 1e-9


@needs_torch
def test_equal_data_and_seeds_give_equal_nets() -> None:
    class Glance(NetLearner):
        steps = 10

    first, second, other = (Glance().fit(tiled(6), Training(seed=seed)) for seed in (1, 1, 2))
    assert first == second
    assert first.body != other.body


@needs_torch
def test_a_net_is_read_back_equal(model: Model, tmp_path: Path) -> None:
    save(model, tmp_path / "net.json")
    assert load(tmp_path / "net.json") == model


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingPart, match=r"tunewise\[learn,torch\]"):
        NetLearner().fit(KNOWN, Training())
