"""Heuristics are found in files, directories and packages; what is not sound is refused or left out by name."""

import importlib.metadata
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_models import saved

import tunewise as tw
from tunewise import models
from tunewise.codegen.python import python_source
from tunewise.errors import InvalidModel, InvalidSetting, NotFound
from tunewise.heuristics import load_path, load_places

LOW, HIGH = {"steps": 1}, {"steps": 4}


def test_a_model_file_becomes_a_heuristic_that_ranks(tmp_path: Path) -> None:
    (heuristic,) = tw.load_heuristic(saved(tmp_path / "m.json", "loop", LOW, HIGH))
    assert heuristic.decision == "loop"
    assert heuristic.rank({"n": 50}) == [HIGH, LOW]
    assert heuristic.choose({"n": 5}) == LOW
    assert heuristic.choose({"n": 500}) is None


def test_what_a_heuristic_says_of_itself_is_read_off_its_card(tmp_path: Path) -> None:
    scores = {"regret": 1.0385, "default_regret": 1.3182, "p95": 1.2}
    place = saved(tmp_path / "m.json", "loop", LOW, HIGH, learner="tree", created="2026-01-31", scores=scores)
    said = "tree of 2026-01-31, regret 1.04 on problems held out, the default's 1.32"
    assert load_path(place)[0].about == said
    assert load_path(saved(tmp_path / "m.json", "loop", LOW, HIGH))[0].about == "learned"


def test_a_directory_gives_all_its_heuristics_in_order_of_their_names(tmp_path: Path) -> None:
    saved(tmp_path / "b.json", "second", LOW, HIGH)
    saved(tmp_path / "a.json", "first", LOW, HIGH)
    (tmp_path / "notes.txt").write_text("not a model")
    assert [heuristic.decision for heuristic in load_path(tmp_path)] == ["first", "second"]


def test_directories_in_a_directory_are_not_looked_into(tmp_path: Path) -> None:
    saved(tmp_path / "a.json", "first", LOW, HIGH)
    (tmp_path / "b.json").symlink_to(tmp_path)
    (tmp_path / "c.json").mkdir()
    saved(tmp_path / "c.json" / "d.json", "second", LOW, HIGH)
    assert [heuristic.decision for heuristic in load_path(tmp_path)] == ["first"]


def test_files_that_are_too_many_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tunewise.heuristics.loading.MAX_FILES", 1)
    saved(tmp_path / "a.json", "first", LOW, HIGH)
    saved(tmp_path / "b.json", "second", LOW, HIGH)
    assert [heuristic.decision for heuristic in load_path(tmp_path)] == ["first"]
    assert "holds 2 heuristics, and only the first 1 by name are loaded" in caplog.text


def test_a_bad_file_of_a_directory_is_named_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved(tmp_path / "good.json", "loop", LOW, HIGH)
    (tmp_path / "bad.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert len(load_places([tmp_path, tmp_path / "missing"])) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "bad.json" in caplog.text


@pytest.mark.parametrize("name", ["m.json", "m.py"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(NotFound, match="not a regular file"):
        tw.load_heuristic(tmp_path / name)
    saved(tmp_path / "good.json", "loop", LOW, HIGH)
    assert len(load_places([tmp_path])) == 1
    assert f"{name} cannot be read" in caplog.text


def test_a_place_that_cannot_be_looked_into_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refused)
    assert load_places([tmp_path]) == ()


@pytest.mark.parametrize("name", ["missing.json", "missing.py", "."])
def test_nothing_to_load_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound):
        tw.load_heuristic(tmp_path / name)


@pytest.mark.parametrize(("name", "text"), [("m.json", "{}"), ("m.json", "\x00"), ("m.py", "import os\n")])
def test_a_file_that_is_not_sound_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidModel, match=name):
        tw.load_heuristic(tmp_path / name)


class _Point:
    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value

    def load(self) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that pretends a package offers something under a name."""

    def offered(name: str, value: Any) -> None:
        points = [_Point(name, value)]
        monkeypatch.setattr("tunewise.heuristics.loading.entry_points", lambda group: points)

    return offered


def test_a_package_offers_heuristics_by_an_entry_point(tmp_path: Path, offer: Any) -> None:
    own = tw.Heuristic("own", "other", lambda features: [LOW])
    offer("experts", [saved(tmp_path / "m.json", "loop", LOW, HIGH), own])
    assert [heuristic.decision for heuristic in tw.load_heuristic(plugin="experts")] == ["loop", "other"]


def test_a_plugin_that_nobody_offers_suggests_a_close_name(offer: Any) -> None:
    offer("experts", [])
    with pytest.raises(NotFound, match="did you mean 'experts'"):
        tw.load_heuristic(plugin="expert")


@pytest.mark.parametrize("value", [7, RuntimeError("no such thing"), [3]])
def test_a_plugin_that_breaks_or_offers_something_else_is_refused(value: Any, offer: Any) -> None:
    offer("experts", value)
    with pytest.raises(InvalidModel, match="'experts'"):
        tw.load_heuristic(plugin="experts")


class Rule(tw.Expert):
    name = "rule"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": " "}, "has no name"),
        ({"most": "x"}, "most='x' is not a number of seeds"),
        ({"hardware": "cuda"}, "hardware='cuda' is not devices"),
        ({"backend": ["c"]}, r"backend=\['c'\] is not a word"),
        ({"__init__": lambda self, size: None}, "do not load: TypeError"),
        ({"__init__": lambda self: sys.exit(3)}, "do not load: SystemExit: 3"),
        ({"most": property(lambda self: 1 / 0)}, "do not load: ZeroDivisionError"),
    ],
)
def test_a_rule_of_thumb_that_is_not_sound_is_refused_by_name(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidModel, match=f"'(Rule|rule)'.*{reason}"):
        tw.load_heuristic(type("Rule", (Rule,), wrong))


@pytest.mark.parametrize(
    "wrong", [{"name": 7}, {"decision": ""}, {"ranking": None}, {"kind": "guess"}, {"fence": None}]
)
def test_a_heuristic_that_is_not_sound_is_refused(wrong: dict[str, Any]) -> None:
    sound: dict[str, Any] = {"name": "mine", "decision": "gemm", "ranking": lambda features: []}
    with pytest.raises(InvalidModel, match=next(iter(wrong))):
        tw.Heuristic(**{**sound, **wrong})


def test_no_entry_point_is_looked_for_until_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("entry points were looked for")

    monkeypatch.setattr(importlib.metadata, "entry_points", looked)
    monkeypatch.setattr("tunewise.heuristics.loading.entry_points", looked)
    decision = tw.Decision("unasked", space=tw.Space({"x": [1, 2]}), default={"x": 1})
    assert decision.decide({"n": 1}).rung == "default"


@pytest.mark.parametrize("given", [{}, {"what": "m.json", "plugin": "experts"}])
def test_a_path_or_a_plugin_is_given_and_not_both(given: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting):
        tw.load_heuristic(**given)  # type: ignore[arg-type]


def test_a_generated_module_is_a_heuristic_like_its_model(tmp_path: Path) -> None:
    place = saved(tmp_path / "m.json", "loop", LOW, HIGH, fence={"hardware.kind": "cpu"})
    (tmp_path / "m.py").write_text(python_source(models.load(place)))
    (model,), (code,) = load_path(place), load_path(tmp_path / "m.py")
    assert (code.decision, dict(code.fence)) == (model.decision, dict(model.fence))
    asked = [{"n": n} for n in (0, 1, 5, 10, 10.5, 100, 101, 1000, 1001)] + [{}, {"n": "5"}]
    assert [code.rank(features) for features in asked] == [model.rank(features) for features in asked]


def test_importing_a_heuristic_is_no_way_to_run_code(tmp_path: Path) -> None:
    place = saved(tmp_path / "m.json", "loop", LOW, HIGH)
    text = python_source(models.load(place))
    (tmp_path / "m.py").write_text(text + "\nprint(open('/etc/passwd'))\n")
    with pytest.raises(InvalidModel):
        tw.load_heuristic(tmp_path / "m.py")


def test_a_real_package_is_imported_only_once_it_is_named(tmp_path: Path) -> None:
    saved(tmp_path / "models" / "m.json", "loop", LOW, HIGH)
    (tmp_path / "gemm_experts.py").write_text(f"PATHS = [{str(tmp_path / 'models')!r}]\n")
    facts = tmp_path / "gemm_experts-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: gemm-experts\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[tunewise.heuristics]\nexperts = gemm_experts:PATHS\n")
    program = (
        "import sys, tunewise as tw\n"
        "loop = tw.Decision('loop', space=tw.Space({'steps': [1, 4]}), default={'steps': 4})\n"
        "print(loop.decide({'n': 5}).rung, 'gemm_experts' in sys.modules)\n"
        "tw.load_heuristic(plugin='experts')\n"
        "print(loop.decide({'n': 5}).rung, 'gemm_experts' in sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["default False", "learned True"]


def test_a_file_that_is_too_long_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_bytes(b"#" * (3 << 20))
    with pytest.raises(InvalidModel, match=r"^[^:]*long\.py is longer than"):
        tw.load_heuristic(tmp_path / "long.py")


def test_an_empty_name_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "m.json", "loop", LOW, HIGH)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match="name a file or a directory"):
        tw.load_heuristic("")
    assert len(load_path(".")) == 1
