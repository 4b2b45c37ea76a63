"""Deterministic programs: nothing is measured, and every answer is a pin, the recorded one or the default."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from loops import Loop

import tunewise as tw
from limits import HANG_S
from tunewise.errors import DeterminismWarning, InvalidSetting, Nondeterministic
from tunewise.models import Card, Columns, Leaf, Model, Number, Tree, save
from tunewise.session import context

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RECORDED = ("pin", "memory", "default")


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)


def trials_of(*names: str) -> int:
    store = context.current_store()
    return sum(len(store.trials(subject)) for name in names for subject in store.subjects(name))


def learned(home: Path, decision: str) -> None:
    """Let a model and a table answer for a decision, each on a part of the problems."""
    place = home / "heuristics"
    place.mkdir(parents=True, exist_ok=True)
    columns = Columns((Number("n", 1, 1000),))
    model = Model(card=Card(decision=decision), choices=({"steps": 1},), columns=columns, body=Tree((Leaf((0,)),)))
    save(model, place / "learned.json")
    rule = {"when": {"n": {"max": 20}}, "configs": [{"steps": 1}]}
    (place / "table.json").write_text(json.dumps({"decision": decision, "rules": [rule]}))


Block = Callable[[], AbstractContextManager[Any]]
BLOCKS: tuple[Block, ...] = (
    nullcontext,
    lambda: tw.mode("use"),
    lambda: tw.mode("replay"),
    lambda: tw.mode("off"),
    lambda: context.within(context.frame("tune", accept=frozenset({"near"}))),
    lambda: context.within(context.frame("collect")),
    lambda: context.within(context.frame("tune", thorough=True, background=True)),
)


def test_a_thousand_mixed_calls_measure_nothing_and_guess_nothing(home: Path) -> None:
    positions = [None, context.frame("tune"), context.frame("tune", background=True), context.frame("off")]
    position = [positions[0]]
    plain, own = Loop("plain"), Loop("own", mode="tune", switch=lambda: position[0])
    learned(home, "plain")
    for it in (plain, own):
        it.loop.tune(8)
        it.loop.tune(40)
    plain.decision.pin({"steps": 1}, n=77)
    known = {(name, n): {"steps": 1} for name in ("plain", "own") for n in (8, 40)} | {("plain", 77): {"steps": 1}}
    rng, before = random.Random(0), trials_of("plain", "own")
    assert plain.decision.decide({"n": 15}).rung == "table"
    assert plain.decision.decide({"n": 500}).rung == "learned"
    torch.use_deterministic_algorithms(True)
    for it in (plain, own):
        it.calls.clear()
    for _ in range(1000):
        it, n, block = rng.choice((plain, own)), rng.choice((8, 9, 15, 40, 42, 77, 500)), rng.choice(BLOCKS)
        if rng.random() < 0.05:
            position[0] = rng.choice(positions)
            own.decision.forget()
        with block():
            answer = it.loop.decide(n)
            it.loop(n)
            is_off = it.decision.mode_in_force() == "off"
        assert answer.rung in RECORDED
        expected = {"steps": 4} if is_off else known.get((it.decision.name, n), {"steps": 4})
        assert answer.config == expected, (it.decision.name, n, answer)
    assert trials_of("plain", "own") == before
    assert sum(plain.calls.values()) + sum(own.calls.values()) == 1000


def test_an_answer_given_with_a_mode_is_deterministic_too(home: Path, deterministic: None) -> None:
    learned(home, "loop")
    it = Loop()
    assert it.decision.decide({"n": 500}, mode="use").rung == "default"
    assert it.decision.explain({"n": 500}, mode="tune").mode == "replay"
    assert it.decision.explain({"n": 500}, mode="off").mode == "off"


def test_off_inside_determinism_leaves_no_answer_behind() -> None:
    it = Loop()
    it.loop.tune(8)
    torch.use_deterministic_algorithms(True)
    with tw.mode("off"):
        assert it.rung == "default"
    assert it.rung == "memory"
    with tw.mode("off"):
        assert it.rung == "default"


def test_turned_off_again_the_old_answers_are_back(home: Path) -> None:
    learned(home, "loop")
    it = Loop()
    assert it.decision.decide({"n": 500}).rung == "learned"
    torch.use_deterministic_algorithms(True)
    assert it.decision.decide({"n": 500}).rung == "default"
    torch.use_deterministic_algorithms(False)
    assert it.decision.decide({"n": 500}).rung == "learned"


@pytest.mark.parametrize("plan", [{}, {"thorough": True}, {"measure_all": True}])
@pytest.mark.usefixtures("deterministic")
def test_tuning_something_unknown_is_an_error_that_says_how_to_go_on(plan: dict[str, bool]) -> None:
    it = Loop()
    with pytest.raises(Nondeterministic, match=r"loop \(n=8\) is not tuned: PyTorch is to use deterministic algo"):
        it.loop.tune(8, **plan)
    with tw.mode("off"), pytest.raises(Nondeterministic, match="TUNEWISE_ON_DETERMINISTIC=warn"):
        it.decision.tune({"n": 8}, **plan)
    assert sum(it.calls.values()) == 0


def test_tuning_something_known_gives_what_is_recorded_unless_it_is_to_be_measured_again() -> None:
    it = Loop()
    first = it.loop.tune(8)
    torch.use_deterministic_algorithms(True)
    it.calls.clear()
    assert it.loop.tune(8).answer.config == first.answer.config
    for plan in ({"again": True}, {"measure_all": True}):
        with pytest.raises(Nondeterministic):
            it.loop.tune(8, **plan)
    assert sum(it.calls.values()) == 0


@pytest.mark.parametrize("name", ["tune", "collect"])
@pytest.mark.usefixtures("deterministic")
def test_a_block_that_would_measure_is_refused(name: Any) -> None:
    with pytest.raises(Nondeterministic, match=f"what this '{name}' block asks is not tuned"), tw.mode(name):
        pass


@pytest.mark.usefixtures("deterministic")
def test_by_setting_it_is_a_warning_and_the_recorded_answer() -> None:
    tw.configure(on_deterministic="warn")
    it = Loop()
    with pytest.warns(DeterminismWarning, match="the answer is the recorded one or the default") as told:
        assert it.loop.tune(8).answer.rung == "default"
    assert told[0].filename == __file__
    with pytest.warns(DeterminismWarning) as told, tw.mode("tune"):
        it.loop(8)
    assert told[0].filename == __file__
    assert it.calls == {4: 1}


def test_the_setting_is_read_from_the_environment_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_ON_DETERMINISTIC", "warn")
    tw.configure()
    torch.use_deterministic_algorithms(True)
    with pytest.warns(DeterminismWarning):
        Loop().loop.tune(8)
    with pytest.raises(InvalidSetting, match="'ignore' is not one of error, warn"):
        tw.configure(on_deterministic="ignore")  # type: ignore[arg-type]


def test_replay_measures_nothing_and_refuses_to_tune(home: Path) -> None:
    learned(home, "loop")
    it = Loop()
    it.loop.tune(8)
    it.calls.clear()
    with tw.mode("replay"):
        for n, rung in ((8, "memory"), (9, "default"), (500, "default")) * 10:
            assert it.loop.decide(n).rung == rung
        with pytest.raises(Nondeterministic, match="the mode here is replay"):
            it.loop.tune(9)
    assert sum(it.calls.values()) == 0


def test_torch_imported_after_the_first_answer_is_seen() -> None:
    program = """
import sys, tempfile, types
import tunewise as tw
tw.configure(home=tempfile.mkdtemp())
d = tw.Decision("d", space=tw.Space({"x": [1, 2]}), default={"x": 1}, mode="off")
for _ in range(3):
    d.decide({"n": 1})
asked = []
torch = types.ModuleType("torch")
sys.modules["torch"] = torch  # as while it is being imported
d.decide({"n": 1})
torch.are_deterministic_algorithms_enabled = lambda: bool(asked.append(1))
for _ in range(3):
    d.decide({"n": 1})
assert len(asked) >= 3, asked
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANG_S)
