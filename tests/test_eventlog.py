"""Events are whole lines of JSON, whoever writes, rotates or fills the disk; without a setting there are none."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tunewise
from limits import HANG_S
from tunewise import eventlog
from tunewise.errors import EventsWarning, InvalidSetting
from tunewise.eventlog import DEBUG, INFO, WARNING, tell


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Put nothing in force before and after."""
    eventlog.put_in_force(None, "info")
    yield
    eventlog.put_in_force(None, "info")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of events, in force."""
    eventlog.put_in_force(tmp_path / "events.jsonl", "info")
    return tmp_path / "events.jsonl"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_an_event_is_one_line_with_time_level_name_and_process(file: Path) -> None:
    tell(INFO, "run-started", "a run begins", decision="gemm", problem={"m": 64}, gain=float("nan"))
    (line,) = lines(file)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "event": "run-started",
        "pid": os.getpid(),
        "decision": "gemm",
        "problem": {"m": 64},
        "gain": None,
    }


def test_the_file_is_private_and_made_with_the_first_event(file: Path) -> None:
    assert not file.exists()
    tell(INFO, "x", "x")
    assert file.stat().st_mode & 0o777 == 0o600


def test_events_below_the_level_are_not_written(tmp_path: Path) -> None:
    eventlog.put_in_force(tmp_path / "e", "warning")
    tell(INFO, "quiet", "x")
    tell(WARNING, "loud", "x")
    assert [line["event"] for line in lines(tmp_path / "e")] == ["loud"]
    assert not eventlog.is_told(INFO)


def test_hostile_names_stay_inside_one_line(file: Path) -> None:
    names = ["a\nb", '"}', "\u2028", "\ud800", "\0", "{", "é"]
    tell(INFO, "x", "x", names=names, odd=object)
    (line,) = lines(file)
    assert line["names"] == names


def test_a_part_without_end_is_left_out_and_the_rest_is_told(file: Path) -> None:
    tell(INFO, "x", "x", problem={"name": "x" * 10_000}, decision="gemm")
    (line,) = lines(file)
    assert (line["decision"], "problem" in line) == ("gemm", False)


def test_what_the_library_logs_is_in_it_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("tunewise.heuristics.loading").warning("the heuristic %s breaks", "skinny")
    (line,) = lines(file)
    assert (line["event"], line["level"], line["text"]) == ("log", "warning", "the heuristic skinny breaks")


def test_who_heard_the_library_without_the_setting_still_does(tmp_path: Path) -> None:
    program = (
        "import logging, tunewise; from tunewise import eventlog\n"
        f"eventlog.put_in_force(__import__('pathlib').Path({str(tmp_path / 'e')!r}), 'info')\n"
        "logging.getLogger('tunewise.x').warning('hear me')\n"
        "logging.getLogger('tunewise.x').info('not me')\n"
        "eventlog.tell(eventlog.WARNING, 'store-trouble', 'warned of elsewhere')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert ran.stderr == "hear me\n"
    assert [line["event"] for line in lines(tmp_path / "e")] == ["log", "store-trouble"]


def test_programs_that_set_up_logging_get_records_with_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tunewise"):
        tell(INFO, "run-started", "gemm: a run begins", decision="gemm", process="p1")
    (record,) = caplog.records
    assert record.getMessage() == "gemm: a run begins"
    assert vars(record)["event"] == "run-started"
    assert vars(record)["facts"] == {"decision": "gemm", "process": "p1"}


def test_nothing_is_told_where_nobody_listens(tmp_path: Path) -> None:
    program = "from tunewise import eventlog as e; assert not e.is_told(e.WARNING); e.tell(e.WARNING, 'x', 'x')"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=HANG_S
    )
    assert (ran.stdout, ran.stderr, list(tmp_path.iterdir())) == ("", "", [])


def test_a_file_that_was_rotated_is_begun_anew(file: Path) -> None:
    tell(INFO, "one", "x")
    file.rename(file.with_suffix(".1"))
    tell(INFO, "two", "x")
    file.unlink()
    tell(INFO, "three", "x")
    assert [line["event"] for line in lines(file.with_suffix(".1"))] == ["one"]
    assert [line["event"] for line in lines(file)] == ["three"]


def test_a_file_that_was_truncated_goes_on_at_its_beginning(file: Path) -> None:
    tell(INFO, "one", "x")
    os.truncate(file, 0)
    tell(INFO, "two", "x")
    assert [line["event"] for line in lines(file)] == ["two"]


def test_a_full_disk_costs_one_warning_and_no_line_after_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(INFO, "one", "x")
    real = os.write

    def full(fd: int, raw: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(eventlog.os, "write", full)
    with pytest.warns(EventsWarning, match="No space left on device"):
        tell(INFO, "two", "x")
    tell(INFO, "three", "x")
    monkeypatch.setattr(eventlog.os, "write", real)
    tell(INFO, "four", "x")
    assert [line["event"] for line in lines(file)] == ["one", "four"]


def test_a_device_that_is_always_full_costs_one_warning() -> None:
    eventlog.put_in_force(Path("/dev/full"), "info")
    with pytest.warns(EventsWarning, match="/dev/full: No space left on device"):
        tell(INFO, "one", "x")
    tell(INFO, "two", "x")


def test_a_line_that_the_disk_took_in_part_spoils_no_other(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(eventlog.os, "write", lambda fd, raw: real(fd, raw[:10]))
    with pytest.warns(EventsWarning, match="a part of a line"):
        tell(INFO, "one", "x")
    monkeypatch.setattr(eventlog.os, "write", real)
    tell(INFO, "two", "x")
    torn, whole = file.read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(whole)["event"] == "two"


def test_a_directory_that_is_missing_costs_one_warning(tmp_path: Path) -> None:
    eventlog.put_in_force(tmp_path / "none" / "e", "info")
    with pytest.warns(EventsWarning, match="No such file"):
        tell(INFO, "x", "x")


def test_a_pipe_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    eventlog.put_in_force(tmp_path / "pipe", "info")
    with pytest.warns(EventsWarning):
        tell(INFO, "x", "x")


_CROWD = """
import sys
from pathlib import Path
from tunewise import eventlog

eventlog.put_in_force(Path(sys.argv[1]), "info")
for number in range(200):
    eventlog.tell(eventlog.INFO, "x", "x", who=sys.argv[2], number=number, padding="y" * (number * 17 % 3000))
"""


def test_lines_of_many_processes_and_threads_stay_whole(file: Path) -> None:
    crowd = [subprocess.Popen([sys.executable, "-c", _CROWD, str(file), str(place)]) for place in range(4)]
    threads = [threading.Thread(target=lambda: [tell(INFO, "t", "x", pad="z" * 999) for _ in range(50)]) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert [process.wait(HANG_S) for process in crowd] == [0] * 4
    told = lines(file)
    assert len(told) == 900
    for place in range(4):
        assert [line["number"] for line in told if line.get("who") == str(place)] == list(range(200))


def test_a_forked_child_writes_lines_of_its_own(file: Path) -> None:
    tell(INFO, "parent", "x")
    child = os.fork()
    if child == 0:
        tell(INFO, "child", "x")
        os._exit(0)
    os.waitpid(child, 0)
    assert [(line["event"], line["pid"]) for line in lines(file)] == [("parent", os.getpid()), ("child", child)]


def test_stderr_is_a_place_too() -> None:
    program = (
        "import tunewise as tw; tw.configure(events='stderr'); from tunewise.eventlog import *; tell(INFO, 'x', 'y')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert json.loads(ran.stderr)["event"] == "x"


def test_the_setting_is_put_in_force_and_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_EVENTS", str(tmp_path / "e"))
    monkeypatch.setenv("TUNEWISE_EVENTS_LEVEL", "debug")
    tunewise.configure()
    assert eventlog.is_told(DEBUG)
    tunewise.configure(events_level="warning")
    assert not eventlog.is_told(INFO)
    monkeypatch.delenv("TUNEWISE_EVENTS")
    tunewise.configure()
    assert not eventlog.is_told(WARNING) or logging.getLogger(eventlog.NAME).hasHandlers()
    assert not [one for one in logging.getLogger("tunewise").handlers if "eventlog" in type(one).__module__]
    with pytest.raises(InvalidSetting, match="EVENTS_LEVEL='loud'"):
        tunewise.configure(events_level="loud")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the store /home/alice/x cannot be used: database or disk is full", "database or disk is full"),
        (
            'x: connection to server at "db.corp" (10.0.0.1), port 5 failed: no',
            "connection to server, port 5 failed: no",
        ),
        ("the directory /home/alice belongs to user 1000", "the directory ... belongs to another user"),
        ('x: could not translate host name "db.corp" to address: no', "could not translate host name to address: no"),
    ],
)
def test_a_reason_names_no_place(text: str, told: str) -> None:
    assert eventlog.bare(text) == told
