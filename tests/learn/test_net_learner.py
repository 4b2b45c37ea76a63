"""The net's learner: what it loses on problems it has not seen, how it stops, and that use needs no PyTorch."""

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiled import tiled

from tunewise.errors import InvalidData, MissingPart
from tunewise.learn.descent import Descent, Examples, Watch, descend
from tunewise.learn.net import NetLearner, descent_of
from tunewise.learn.options import Epoch, Training
from tunewise.learn.split import by_problem
from tunewise.learn.validate import validate
from tunewise.models import Model, Net, load, save

KNOWN, HELD_OUT = by_problem(tiled(40), 0.3, seed=1)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def heard() -> list[Epoch]:
    return []


@pytest.fixture(scope="module")
def model(heard: list[Epoch]) -> Model:
    return NetLearner().fit(KNOWN, Training(epochs=60, listener=heard.append))


@needs_torch
def test_a_net_ranks_problems_it_has_not_seen(model: Model) -> None:
    found = validate(model, HELD_OUT)
    assert found.top[3] < 1.1
    assert found.default_regret is not None
    assert found.regret.geomean < found.default_regret.geomean


@needs_torch
def test_progress_is_heard_part_by_part(model: Model, heard: list[Epoch]) -> None:
    assert list(dict.fromkeys(epoch.part for epoch in heard)) == ["fold 1", "fold 2", "fold 3", "net", "level"]
    assert all((epoch.held_out is not None) == epoch.part.startswith("fold") for epoch in heard)
    assert all(epoch.number <= epoch.of <= 60 for epoch in heard if epoch.part != "level")


@needs_torch
def test_the_card_has_scores_of_problems_held_out(model: Model) -> None:
    assert model.card.scores["problems"] == len(KNOWN)
    assert model.card.scores["regret"] >= 1.0


@needs_torch
def test_equal_data_and_seeds_give_equal_nets() -> None:
    first, second = (NetLearner().fit(tiled(3), Training(seed=1, epochs=1)) for _ in range(2))
    assert first == second


@needs_torch
def test_options_of_training_change_the_net() -> None:
    examples = Examples(np.eye(8), np.arange(8.0), np.ones(8))
    changed: list[dict[str, Any]] = [{}, {"batch_size": 3}, {"learning_rate": 0.1}, {"epochs": 2}, {"seed": 1}]
    runs = [descend(examples, descent_of(Training(**{"epochs": 1, **options}))) for options in changed]
    assert len({run.layers for run in runs}) == len(changed)


@needs_torch
def test_training_stops_when_what_is_held_out_gets_no_better() -> None:
    chance = np.random.default_rng(0)
    given = chance.standard_normal((64, 4))
    noise, other = chance.standard_normal((2, 64))  # nothing to be learned
    watch = Watch(given, lambda guesses: float(((guesses - other) ** 2).mean()))
    heard: list[Epoch] = []
    run = descend(Examples(given, noise, np.ones(64)), Descent(widths=(32,), epochs=200), watch, heard.append)
    assert heard[-1].number < 200
    assert run.share * 200 < heard[-1].number


@needs_torch
def test_a_net_is_read_back_equal_with_its_level(model: Model, tmp_path: Path) -> None:
    save(model, tmp_path / "net.json")
    again = load(tmp_path / "net.json")
    assert again == model
    assert isinstance(again.body, Net)
    assert again.body.level is not None


@pytest.mark.parametrize("options", [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0.0}, {"learning_rate": 2.0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidData, match=next(iter(options))):
        Training(**options)


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingPart, match=r"tunewise\[learn,torch\]"):
        NetLearner().fit(KNOWN, Training())
