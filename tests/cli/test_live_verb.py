"""`tunewise live` as a command: a snapshot without a server, and what it says where it cannot serve."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.session.context import current_store


def test_a_snapshot_tells_of_a_run_that_ended(asked: Callable[..., Any], toy: str, tmp_path: Path) -> None:
    asked("tune", toy, "--problem", "n=100", "--budget", "3")
    path = tmp_path / "live.html"
    said = {"file": str(path), "running": 0, "finished": 1, "trouble": None}
    assert asked("live", "--snapshot", path) == said
    assert '<th id="finished-0-0" scope="row">toy</th>' in path.read_text()
    assert len(current_store().signs("run")) == 1


def test_a_snapshot_needs_no_server(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_away(monkeypatch)
    result = cli("live", "--snapshot", tmp_path / "live.html")
    assert result.exit_code == 0
    assert (tmp_path / "live.html").is_file()


def test_a_snapshot_that_cannot_be_written_is_an_error_in_one_line(cli: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "none" / "live.html", tmp_path / "file" / "live.html", tmp_path / ("x" * 300)):
        result = cli("live", "--snapshot", place)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {place} cannot be written: ")


def test_without_its_extra_the_way_out_is_told(cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch)
    result = cli("live")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: the live page needs uvicorn, which is not installed: pip install 'tunewise[dashboard]'\n"
    )


def test_a_token_that_others_can_read_is_refused(cli: Callable[..., Result], tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tunewise[dashboard]'")
    path = tmp_path / "token"
    path.write_text("a" * 32)
    path.chmod(0o640)
    result = cli("live", "--token-file", path, "--port", "0")
    assert result.exit_code == 1
    assert f"chmod 600 {path}" in result.stderr
    assert "a" * 32 not in result.stderr


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_a_host_that_is_not_ours_is_refused(cli: Callable[..., Result], host: str) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tunewise[dashboard]'")
    result = cli("live", "--host", host, "--port", "0")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: nothing can listen at {host}, port 0: ")


@pytest.mark.parametrize(("host", "is_warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_who_opens_the_page_to_a_network_is_warned(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, host: str, is_warned: bool
) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tunewise[dashboard]'")
    monkeypatch.setattr("tunewise.report.live.serve", lambda listening, settings, token: listening.socket.close())
    monkeypatch.setattr("os.nice", lambda by: None)
    result = cli("live", "--host", host, "--port", "0")
    assert result.exit_code == 0
    assert ("warning: this is plain HTTP" in result.stderr) == is_warned


def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let uvicorn be missing."""
    monkeypatch.delitem(sys.modules, "tunewise.report.live", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
