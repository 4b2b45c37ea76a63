"""`tunewise pin`: answers frozen in a file, and used from it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

import tunewise as tw
from tunewise.formats.pins import read

Cli = Callable[..., Result]
Asked = Callable[..., Any]


def test_what_is_printed_is_a_pins_file(cli: Cli, asked: Asked, toy: str, tmp_path: Path) -> None:
    config = asked("tune", toy, "--problem", "n=2000")["tunings"][0]["config"]
    (tmp_path / "pins.json").write_text(cli("pin").stdout)
    (pin,) = read(tmp_path / "pins.json")
    assert (pin.decision, pin.problem, pin.config) == ("toy", {"n": 2000}, config)
    assert pin.device
    assert asked("pin", "--anywhere")["pins"][0].get("device") is None


def test_a_frozen_answer_is_explained_with_its_file(
    asked: Asked, cli: Cli, toy: str, tmp_path: Path, monkeypatch: Any
) -> None:
    asked("tune", toy, "--problem", "n=2000", "--budget", 2)
    out = tmp_path / "pins.json"
    assert asked("pin", "toy", "--out", out) == {"file": str(out), "pins": 1}
    monkeypatch.setenv("TUNEWISE_PINS", str(out))
    tw.configure()
    told = asked("explain", toy, "--problem", "n=2000")
    assert told["explanations"][0]["answer"]["rung"] == "pin"
    assert str(out) in json.dumps(told)


def test_a_decision_nobody_tuned_is_an_error(cli: Cli) -> None:
    ended = cli("pin", "nothing")
    assert ended.exit_code != 0
    assert "nothing is remembered of 'nothing'" in ended.stderr


def test_with_nothing_remembered_there_is_an_empty_file(asked: Asked) -> None:
    assert asked("pin")["pins"] == []
