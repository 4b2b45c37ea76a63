"""Pins files as a rung: what they answer, before whom, and what is passed over."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from loops import Loop

import tunewise as tw
from tunewise.errors import InvalidFile, InvalidSetting, NotFound, PinsWarning
from tunewise.formats import pins as files
from tunewise.formats.pins import PinnedAnswer
from tunewise.session import context
from tunewise.session.pins import freeze


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pins.json"


def write(path: Path, *pins: PinnedAnswer) -> Path:
    path.write_bytes(files.encode(pins))
    return path


def pinned(n: int, steps: Any = 1, **more: Any) -> PinnedAnswer:
    return PinnedAnswer("loop", {"n": n}, {"steps": steps}, **more)


def test_a_round_trip_gives_the_same_answers_and_measures_nothing(path: Path, tmp_path: Path) -> None:
    it = Loop()
    for n in (8, 50):
        it.loop.tune(n)
    told = {n: dict(it.decision.decide({"n": n}).config) for n in (8, 50)}
    path.write_bytes(files.encode(freeze()))
    tw.configure(home=tmp_path / "empty", pins=[path])
    it.calls.clear()
    for mode in ("replay", "use", "tune"):
        with tw.mode(mode):
            for n in (8, 50):
                answer = it.loop.decide(n)
                assert (answer.rung, dict(answer.config)) == ("pin", told[n])
    assert sum(it.calls.values()) == 0
    assert context.current_store().subjects() == []


def test_off_knows_no_pins(path: Path) -> None:
    tw.configure(pins=[write(path, pinned(8))])
    with tw.mode("off"):
        assert Loop().rung == "default"


def test_a_pin_in_a_file_is_above_memory_and_below_a_pin_of_the_program(path: Path) -> None:
    it = Loop()
    assert it.loop.tune(8).answer.config == {"steps": 1}
    tw.configure(pins=[write(path, pinned(8, 4))])
    assert it.decision.decide({"n": 8}).config == {"steps": 4}
    it.decision.pin({"steps": 1})
    assert it.decision.decide({"n": 8}).source == "pin"


def test_only_exactly_equal_problems_are_pinned(path: Path) -> None:
    it = Loop()
    tw.configure(pins=[write(path, pinned(8))])
    assert [it.decision.decide({"n": n}).rung for n in (8, 8.0, 9)] == ["pin", "pin", "default"]


def test_explain_names_the_file_or_says_why_its_pin_does_not_count(path: Path) -> None:
    it = Loop()
    tw.configure(pins=[write(path, pinned(8, source="run 12"), pinned(9, device={"hardware.name": "abacus"}))])
    assert f"frozen in {path} for exactly this problem: run 12" in str(it.loop.explain(8))
    assert f"that in {path} is for hardware.name 'abacus', and here it is" in str(it.loop.explain(9))
    assert "nothing is pinned for this problem" in str(it.loop.explain(10))


def test_of_several_files_the_first_that_knows_answers(path: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.json", pinned(8, 4), pinned(9, 1))
    tw.configure(pins=[write(path, pinned(8, 1)), other])
    it = Loop()
    assert [it.decision.decide({"n": n}).config["steps"] for n in (8, 9)] == [1, 1]
    assert it.decision.decide({"n": 9}).source == str(other)


def test_a_config_that_is_no_longer_in_the_space_is_passed_over_with_one_warning(path: Path) -> None:
    tw.configure(pins=[write(path, pinned(8, 3))])
    it = Loop()
    with pytest.warns(PinsWarning, match=r"the pin of loop \(n=8\) is not in the space and is not used: steps=3"):
        assert it.rung == "default"
    tw.refresh()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert it.rung == "default"
    assert "is not in the space: steps=3" in str(it.loop.explain(8))


def test_a_pin_may_leave_out_parameters_that_have_their_default(path: Path) -> None:
    decision = tw.Decision("two", space=tw.Space({"a": [1, 2], "b": [1, 2]}), default={"a": 1, "b": 1})
    tw.configure(pins=[write(path, PinnedAnswer("two", {"n": 1}, {"b": 2}))])
    assert decision.decide({"n": 1}).config == {"a": 1, "b": 2}


def test_configs_with_lists_come_back_as_they_were(path: Path, tmp_path: Path) -> None:
    space = tw.Space({"order": tw.permutation(["i", "j"])})
    decision = tw.Decision("order", space=space, default={"order": ("i", "j")}, features=lambda n: {"n": n})
    tw.configure(pins=[write(path, PinnedAnswer("order", {"n": 1}, {"order": ("j", "i")}))])
    assert decision.decide({"n": 1}).config == {"order": ("j", "i")}


def test_the_environment_names_files_and_a_broken_one_is_one_warning(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    monkeypatch.setenv("TUNEWISE_PINS", f"{broken}:{write(path, pinned(8))}")
    tw.configure()
    it = Loop()
    with pytest.warns(PinsWarning, match=r"broken\.json is not a pins file"):
        assert it.rung == "pin"
    tw.refresh()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert it.rung == "pin"


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other", "version": 1, "pins": []}'])
def test_a_broken_file_named_by_a_call_is_an_error_and_changes_nothing(text: str, path: Path) -> None:
    tw.configure(mode="off")
    path.write_text(text)
    with pytest.raises(InvalidFile, match=r"pins\.json is"):
        tw.configure(pins=[path])
    assert Loop().decision.mode_in_force() == "off"
    with pytest.raises(InvalidFile, match="cannot be read"):
        tw.configure(pins=[path.with_name("nowhere.json")])
    with pytest.raises(InvalidSetting, match="is not a list of files"):
        tw.configure(pins=str(path))


@pytest.mark.parametrize("pins", [5, [1], [None], ["~nobody-of-that-name/pins.json"]])
def test_pins_that_are_no_list_of_files_are_refused(pins: Any) -> None:
    with pytest.raises(InvalidSetting, match="is not a list of files"):
        tw.configure(pins=pins)


def test_a_file_is_read_once_until_answers_are_to_be_forgotten(path: Path) -> None:
    tw.configure(pins=[write(path, pinned(8))])
    it = Loop()
    assert it.rung == "pin"
    write(path, pinned(9))
    assert it.decision.decide({"n": 9}).rung == "default"
    tw.refresh()
    assert [it.decision.decide({"n": n}).rung for n in (8, 9)] == ["default", "pin"]


def test_freeze_takes_the_latest_verdict_of_each_problem_fenced_by_the_device() -> None:
    it, other = Loop(), Loop("other")
    it.loop.tune(8)
    it.loop.tune(8, again=True)
    other.loop.tune(3)
    pins = freeze(["loop"])
    assert [(pin.decision, pin.problem, pin.config) for pin in pins] == [("loop", {"n": 8}, {"steps": 1})]
    assert pins[0].device["hardware.kind"] == "cpu"
    assert pins[0].device["hardware.name"]
    assert "faster than the default" in pins[0].source
    assert {pin.decision for pin in freeze()} == {"loop", "other"}
    assert freeze(["loop"], anywhere=True)[0].device == {}


def test_freeze_leaves_out_what_failed_and_what_was_measured_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Loop()
    it.loop.tune(8)
    monkeypatch.setattr("tunewise.session.pins.detect", lambda: tw.Hardware("cpu", "abacus", "wood", 1, 1))
    assert freeze() == []


def test_freeze_of_an_unknown_decision_says_what_is_there() -> None:
    Loop().loop.tune(8)
    with pytest.raises(NotFound, match="did you mean 'loop'"):
        freeze(["lop"])


def test_pins_hold_under_deterministic_algorithms(path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tw.configure(pins=[write(path, pinned(8))])
    it = Loop()
    torch.use_deterministic_algorithms(True)
    try:
        assert it.loop.tune(8).answer.rung == it.rung == "pin"
    finally:
        torch.use_deterministic_algorithms(False)
    assert sum(it.calls.values()) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": 1}, "unknown field `extra`"),
        ({"problem": {"n": None}}, "Expected"),
        ({"problem": {"": 1}}, "is for no problem"),
        ({"config": {"steps": {"a": 1}}}, "Expected"),
        ({"decision": 3}, "Expected `str`"),
    ],
)
def test_a_pin_that_is_none_is_named_in_the_error(change: dict[str, Any], said: str, path: Path) -> None:
    entry = {"decision": "loop", "problem": {"n": 8}, "config": {"steps": 1}, **change}
    path.write_text(json.dumps({"format": files.FORMAT, "version": files.VERSION, "pins": [entry]}))
    with pytest.raises(InvalidFile, match=said):
        files.read(path)


def test_a_file_beyond_the_limit_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    with pytest.raises(InvalidFile, match="longer than the 10 bytes"):
        files.read(write(path, pinned(8)))
