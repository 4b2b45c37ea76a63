"""`tunewise metrics` on a terminal, in a file and as JSON."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from prometheus_client.parser import text_string_to_metric_families

Cli = Callable[..., Result]
Asked = Callable[..., Any]


def test_what_was_tuned_is_in_the_metrics(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 2)
    found = {family.name: family.samples for family in text_string_to_metric_families(cli("metrics").stdout)}
    assert found["tunewise_verdicts"][0].value == 1
    assert found["tunewise_trials"][0].labels == {"decision": "toy"}
    assert found["tunewise_store_up"][0].value == 1


def test_metrics_are_written_whole_for_whoever_collects_them(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tunewise.prom").write_text("old")
    result = cli("metrics", "--output", tmp_path / "tunewise.prom")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "tunewise_store_up 1\n" in (tmp_path / "tunewise.prom").read_text()
    assert stat.S_IMODE((tmp_path / "tunewise.prom").stat().st_mode) == 0o644
    assert not list(tmp_path.glob(".*.part"))


def test_file_that_cannot_be_written_is_an_error_in_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "none" / "tunewise.prom", tmp_path / "file" / "tunewise.prom", tmp_path / ("x" * 300)):
        result = cli("metrics", "--output", place)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {place} cannot be written: ")


def test_metrics_as_json_have_names_labels_and_values(asked: Asked) -> None:
    found = {family["name"]: family for family in asked("metrics")["metrics"]}
    assert found["tunewise_store_up"]["samples"] == [{"labels": {}, "value": 1.0}]


def test_store_in_trouble_is_a_number_and_no_error(cli: Cli, home: Path) -> None:
    home.write_text("no directory")
    result = cli("metrics")
    assert result.exit_code == 0
    assert "tunewise_store_up 0\n" in result.stdout
