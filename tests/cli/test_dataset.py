"""`tunewise dataset` looks at data, splits it, merges it and shares it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.decision import Failure, Problem, Subject, Timing, Trial
from tunewise.decision.hardware import Environment, Part
from tunewise.formats.datasets import read
from tunewise.session.context import current_store

Cli = Callable[..., Result]
Asked = Callable[..., Any]

LINES = [
    "f_n,choice,is_default,t0,t1",
    *(f"{2**n},{c},{int(c == 'a')},{n + 1},{n + 2}" for n in range(10) for c in "ab"),
]
SECRETS = ("alice", "build-host-17", "s3cr3t")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "toy.csv"
    path.write_text("\n".join(LINES))
    return path


def test_info_tells_what_data_is_worth(cli: Cli, asked: Asked, table: Path) -> None:
    document = asked("dataset", "info", table)
    assert (document["decision"], document["problems"], document["rows"]) == ("toy", 10, 20)
    assert document["headroom"]["geomean"] == 1.0
    shown = cli("dataset", "info", table).stdout
    assert re.search(r"problems +10\n", shown)
    assert "choice=a" in shown


def test_columns_and_units_can_be_named(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("m,algo,first,second\n8,x,1,2\n8,y,3,4\n")
    named = ("--problem", "m", "--config", "algo", "--samples", "first,second", "--unit", "ms", "--default", "y")
    document = asked("dataset", "info", tmp_path / "a.csv", *named)
    assert document["default"] == {"algo": "y"}
    assert document["headroom"]["max"] == pytest.approx(3)


def test_malformed_rows_are_remarked_on_or_refused(cli: Cli, table: Path) -> None:
    table.write_text(table.read_text() + "\n8,a,0,soon,1\n")
    result = cli("dataset", "info", table)
    assert result.exit_code == 0
    assert "1 malformed row passed over" in result.stderr
    strict = cli("dataset", "info", table, "--strict")
    assert strict.exit_code == 1
    assert "line 22: t0 is not a time" in strict.stderr


def test_split_writes_two_files_without_a_common_problem(asked: Asked, table: Path, tmp_path: Path) -> None:
    train, test = tmp_path / "train.parquet", tmp_path / "test.csv"
    document = asked("dataset", "split", table, "--share", 0.3, "--seed", 1, "--out-train", train, "--out-test", test)
    assert (document["train"]["problems"], document["test"]["problems"]) == (7, 3)
    sides = [set(read([path]).features[0].values.tolist()) for path in (train, test)]
    assert not sides[0] & sides[1]


def test_split_into_one_file_is_refused(cli: Cli, table: Path, tmp_path: Path) -> None:
    result = cli("dataset", "split", table, "--out-train", tmp_path / "a.csv", "--out-test", tmp_path / "a.csv")
    assert result.exit_code == 2
    assert "are one file; give two" in result.stderr
    assert not (tmp_path / "a.csv").exists()


def test_split_by_device_needs_devices(cli: Cli, table: Path, tmp_path: Path) -> None:
    files = ("--out-train", tmp_path / "a.csv", "--out-test", tmp_path / "b.csv")
    result = cli("dataset", "split", table, "--by", "device", *files)
    assert result.exit_code == 1
    assert "takes two different devices, and the data have 1" in result.stderr
    assert not (tmp_path / "a.csv").exists()


def test_merge_puts_the_sides_together_again(asked: Asked, table: Path, tmp_path: Path) -> None:
    train, test = tmp_path / "train.parquet", tmp_path / "test.csv"
    asked("dataset", "split", table, "--out-train", train, "--out-test", test)
    document = asked("dataset", "merge", train, test, "--out", tmp_path / "all.parquet")
    assert (document["problems"], document["rows"], document["notes"]) == (10, 20, {})


def plant() -> None:
    """Remember trials whose every corner that is no feature or config holds a secret."""
    user, host, secret = SECRETS
    parts = {
        "hardware.name": f"Xeon of {user}@{host}",
        "compiler": f"/home/{user}/cc",
        "host": host,
        f"variable.{secret}": secret,
        "source": secret,
    }
    environment = Environment(
        (*(Part(name, value, "must") for name, value in parts.items()), Part("user", user, "warn"))
    )
    for n in (8, 16):
        features = {"n": n, "file": f"/home/{user}/data.bin"}
        subject = Subject("toy", Problem(features), (("clock", "cpu"),), environment)
        trials = [
            Trial({"choice": "a"}, Timing((1e-6,)), source=secret, run=secret),
            Trial({"choice": f"/opt/{secret}/b"}, Failure("runtime", f"{host}: /home/{user}: {secret}")),
        ]
        current_store().add(subject, trials)


@pytest.mark.parametrize("kind", ["csv", "parquet", "autoheuristic"])
def test_an_export_holds_no_planted_secret(cli: Cli, asked: Asked, tmp_path: Path, kind: str) -> None:
    plant()
    out = tmp_path / "shared"
    document = asked("dataset", "export", "--decision", "toy", "--out", out, "--format", kind)
    assert (document["rows"], document["is_written"]) == (4, True)
    raw = out.read_bytes().lower()
    assert not [secret for secret in SECRETS if secret.encode() in raw]
    assert len(read([out]).rows) == 4
    assert not [secret for secret in SECRETS if secret in str(document["fields"])]


def test_an_export_shows_its_fields_first_and_a_dry_run_writes_nothing(cli: Cli, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "shared.csv"
    result = cli("dataset", "export", table, "--out", out, "--dry-run")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        *("field", "decision", "f_n", "choice", "is_default", "failure", "t0,")
    ]
    assert not out.exists()


def test_no_data_and_unknown_formats_are_told(cli: Cli, table: Path, tmp_path: Path) -> None:
    assert "give DATA files or a remembered --decision; the store is empty" in cli("dataset", "info").stderr
    assert "nothing is remembered of 'toy'" in cli("dataset", "info", "--decision", "toy").stderr
    assert "end it in one of .parquet" in cli("dataset", "merge", table, "--out", tmp_path / "x.xyz").stderr
