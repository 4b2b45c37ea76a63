"""`tunewise replay` reports in a table, as JSON and as a picture, and says in a sentence what cannot be."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

from limits import HANG_S

DATA = Path(__file__).parents[1] / "data"
PNPOLY, CONVOLUTION = DATA / "pnpoly.json.gz", DATA / "convolution.json"


def test_the_document_has_the_agreed_fields(asked: Callable[..., Any]) -> None:
    told = asked("replay", PNPOLY, CONVOLUTION, "--strategy", "random", "--budget", 30, "--seeds", 3, "--jobs", 1)
    assert (told["strategy"], told["budget"], told["seeds"]) == ("random", 30, 3)
    assert list(told["geomean"]) == ["10", "25"]
    space = told["spaces"][0]
    assert list(space) == [
        *("file", "optimum", "best_over_optimum", "to_5_percent", "to_1_percent", "overhead_ms"),
    ]
    assert space["file"] == str(PNPOLY)
    assert list(space["best_over_optimum"]) == ["10", "25"]
    product = space["best_over_optimum"]["25"] * told["spaces"][1]["best_over_optimum"]["25"]
    assert told["geomean"]["25"] == pytest.approx(product**0.5)


def test_an_exhaustive_replay_finds_the_optimum(asked: Callable[..., Any]) -> None:
    told = asked("replay", CONVOLUTION, "--strategy", "exhaustive", "--budget", 100, "--seeds", 1)
    (space,) = told["spaces"]
    assert space["best_over_optimum"]["50"] == 1.0
    assert 1 <= space["to_5_percent"] <= space["to_1_percent"] <= 38
    assert space["optimum"] == pytest.approx(min_time_ms() / 1e3)


def min_time_ms() -> float:
    times = [record["time"] for record in json.loads(CONVOLUTION.read_text())["cache"].values()]
    return min(time for time in times if not isinstance(time, str))


def test_several_strategies_are_compared_and_drawn(cli: Callable[..., Result], tmp_path: Path) -> None:
    svg = tmp_path / "curves.svg"
    words = ("replay", PNPOLY, "--compare", "random,local", "--budget", 25, "--seeds", 2, "--jobs", 1, "--svg", svg)
    result = cli(*words)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["strategy", "random", "local"]
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    told = json.loads(cli(*words, "--json").stdout)
    assert [row["strategy"] for row in told["strategies"]] == ["random", "local"]


def test_a_comparison_is_drawn_where_nobody_said_where(
    cli: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("replay", CONVOLUTION, "--compare", "random,local", "--budget", 10, "--seeds", 1)
    assert "replay.svg" in result.stderr
    assert ElementTree.parse(tmp_path / "replay.svg").getroot().tag.endswith("svg")


def test_the_table_has_a_line_a_space_and_the_mean(cli: Callable[..., Result]) -> None:
    result = cli("replay", PNPOLY, CONVOLUTION, "--strategy", "local", "--budget", 12, "--seeds", 2, "--jobs", 1)
    assert result.stdout.splitlines()[0].split() == ["space", "@10", "to", "5", "%", "to", "1", "%", "ms/eval"]
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == [PNPOLY.name, CONVOLUTION.name, "geometric"]


def test_a_torn_file_is_replayed_with_a_warning(cli: Callable[..., Result], tmp_path: Path) -> None:
    torn = tmp_path / "torn.json"
    torn.write_bytes(CONVOLUTION.read_bytes()[:-500])
    result = cli("replay", torn, "--budget", 5, "--seeds", 1)
    assert result.exit_code == 0
    assert "warning: torn: the file ends early; 37 configs were read" in result.stderr


def test_our_own_export_can_be_replayed(
    cli: Callable[..., Result], asked: Callable[..., Any], toy: str, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.jsonl"
    for n in (10, 20):
        assert cli("tune", toy, "--problem", f"n={n}").exit_code == 0
    assert cli("store", "export", facts).exit_code == 0
    told = asked("replay", facts, "--strategy", "random", "--budget", 3, "--seeds", 2)
    assert [Path(space["file"]).name for space in told["spaces"]] == ["facts: toy n=10", "facts: toy n=20"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nothing.json",), "there is no file nothing.json"),
        ((DATA,), "is a directory"),
        ((DATA / "LICENSE",), "it is not JSON"),
        ((PNPOLY, "--strategy", "magic"), "strategy 'magic' is not one of"),
        ((PNPOLY, "--prior", PNPOLY), "would give the answer away"),
        ((PNPOLY, "--prior", CONVOLUTION, "--svg", "/no/such/place.svg", "--budget", "2"), "cannot be written"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(cli: Callable[..., Result], words: tuple[object, ...], reason: str) -> None:
    result = cli("replay", "--jobs", 1, "--seeds", 1, *words)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("error:")]) == 1


@pytest.mark.parametrize("words", [(), (PNPOLY, "--compare", ","), (PNPOLY, "--budget", "0"), (PNPOLY, "--seeds", "0")])
def test_wrong_usage_is_told_as_such(cli: Callable[..., Result], words: tuple[object, ...]) -> None:
    assert cli("replay", *words).exit_code == 2


def test_ctrl_c_ends_it_with_one_line_and_no_process_left(home: Path) -> None:
    words = ["replay", str(PNPOLY), "--strategy", "local", "--budget", "300", "--seeds", "5000", "--jobs", "2"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tunewise", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + HANG_S
    while len(in_group(running.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 130
    assert (out, err.strip().splitlines()[-1]) == ("", "interrupted")
    assert "Traceback" not in err
    while in_group(running.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not in_group(running.pid)


def in_group(group: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
