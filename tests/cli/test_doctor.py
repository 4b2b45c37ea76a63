"""`tunewise doctor` as a check of a monitoring system: always an answer, always in time, always of one shape."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result

from tunewise import configure
from tunewise.cli import doctor_machine, doctor_store
from tunewise.store import SqliteStore, guard
from tunewise.testing.store_contract import subject, timed, won

Cli = Callable[..., Result]
Spawned = Callable[..., Any]


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warn of a store in trouble again: a program does so once, and these tests are many programs."""
    monkeypatch.setattr(guard, "_warned", threading.Event())


@pytest.fixture
def check(cli: Cli) -> Callable[..., tuple[int, str, dict[str, Any]]]:
    """Run the check, and give its exit code, its status and the findings by name."""

    def run(*options: str) -> tuple[int, str, dict[str, Any]]:
        result = cli("doctor", "--json", *(options or ("--quick",)))
        document = json.loads(result.stdout)
        return result.exit_code, document["status"], {found["name"]: found for found in document["findings"]}

    return run


Check = Callable[..., tuple[int, str, dict[str, Any]]]


def test_every_finding_has_a_level_and_numbers_where_there_are_numbers(check: Check, home: Path) -> None:
    store = SqliteStore(home)
    store.add(subject(), [timed(8, at=50.0)])
    store.conclude(subject(), won(at=60.0))
    store.miss(subject(m=2))
    code, status, found = check("--json")
    assert (code, status in ("ok", "warning")) == (0, True)
    assert all(set(one) == {"name", "value", "level", "numbers"} for one in found.values())
    numbers = found["store"]["numbers"]
    assert (numbers["trials"], numbers["verdicts"], numbers["problems"], numbers["misses"]) == (1, 1, 1, 1)
    assert numbers["size_bytes"] > 0 < numbers["read_s"]
    assert found["home"]["numbers"]["free_bytes"] > 0
    assert set(found["processor"]["numbers"]) == {"cores", "load"}
    assert found["noise"]["numbers"]["cpu_ratio"] >= 1
    ages = found["activity"]["numbers"]
    assert ages["last_trial_age_s"] - ages["last_verdict_age_s"] == pytest.approx(10, abs=0.1)
    store.close()


def test_a_quick_check_measures_nothing(check: Check) -> None:
    assert "noise" not in check()[2]


def test_a_disk_that_is_nearly_full_is_a_warning(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int = 2**29

    monkeypatch.setattr(doctor_store.shutil, "disk_usage", lambda path: Usage())
    code, status, found = check()
    assert (code, status, found["home"]["level"]) == (0, "warning", "warning")
    assert found["home"]["numbers"] == {"free_bytes": 2**29}


def test_a_home_that_cannot_be_used_is_trouble(check: Check, home: Path) -> None:
    home.write_text("no directory")
    code, status, found = check()
    assert (code, status) == (1, "trouble")
    assert found["home"]["level"] == found["store"]["level"] == "trouble"


def test_a_setting_that_makes_no_sense_is_trouble_and_still_a_document(spawned: Spawned) -> None:
    ran = spawned("doctor", "--json", "--quick", TUNEWISE_MODE="sideways")
    document = json.loads(ran.stdout)
    assert (ran.returncode, document["status"]) == (1, "trouble")
    assert "sideways" in next(one["value"] for one in document["findings"] if one["level"] == "trouble")
    assert "Traceback" not in ran.stderr


def test_a_look_that_breaks_is_a_finding(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Any]:
        raise ZeroDivisionError("no cores at all")

    monkeypatch.setattr(doctor_machine, "processor", broken)
    code, status, found = check()
    assert (code, status, found["processor"]["level"]) == (0, "warning", "warning")
    assert "no cores at all" in found["processor"]["value"]
    assert found["other-extras"]


def test_a_layer_in_trouble_is_a_warning(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_LAYERS", str(tmp_path / "nowhere"))
    configure()
    code, status, found = check()
    assert (code, status) == (0, "warning")
    assert (found["store"]["level"], found["layer-1"]["level"]) == ("ok", "warning")
    assert "TUNEWISE_LAYERS" in found["layer-1"]["value"]


def test_a_store_that_was_set_aside_is_a_warning(check: Check, home: Path) -> None:
    store = SqliteStore(home)
    store.add(subject(), [timed(8)])
    store.close()
    (home / "store.sqlite3").write_bytes(b"nonsense" * 2000)
    code, _, found = check()
    assert (code, found["store"]["level"]) == (0, "warning")
    assert "set aside" in found["store"]["value"]


def test_a_server_that_is_not_there_is_trouble_and_nobody_is_named(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("TUNEWISE_STORE", "postgresql://alice:hunter2@127.0.0.1:1/team")
    configure()
    code, status, found = check()
    assert (code, status, found["store"]["level"]) == (1, "trouble", "trouble")
    assert "127.0.0.1:1/team" in found["store"]["value"]
    assert "alice" not in json.dumps(found)
    assert "hunter2" not in json.dumps(found)


def test_a_server_that_never_answers_is_trouble_in_bounded_time(spawned: Spawned) -> None:
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        place = f"postgresql://alice@127.0.0.1:{port}/team?connect_timeout=2"
        ran = spawned("doctor", "--json", "--quick", TUNEWISE_STORE=place)
    document = json.loads(ran.stdout)
    assert (ran.returncode, document["status"]) == (1, "trouble")


def test_whoever_takes_too_long_is_left_to_itself() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError):
        doctor_store.within(0.05, never.wait)
    never.set()
    assert doctor_store.within(60.0, lambda: 5) == 5
    with pytest.raises(KeyError):
        doctor_store.within(60.0, lambda: {}["missing"])


def test_people_see_what_to_look_at(cli: Cli, home: Path) -> None:
    home.write_text("no directory")
    result = cli("doctor", "--quick")
    assert result.exit_code == 1
    assert any(line.startswith("!!") and "home" in line for line in result.stdout.splitlines())
    assert "marked ! to look at" in result.stderr


@pytest.mark.parametrize("name", ["none/events.jsonl", "."])
def test_events_that_cannot_be_written_are_a_warning(check: Check, tmp_path: Path, name: str) -> None:
    configure(events=tmp_path / name)
    code, _, found = check()
    assert (code, found["events"]["level"]) == (0, "warning")
    configure(events=tmp_path / "events.jsonl")
    assert check()[2]["events"]["level"] == "ok"
    assert not (tmp_path / "events.jsonl").exists()
