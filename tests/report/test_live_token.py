"""The token of the live page: random, private, and the same after a restart."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tunewise.errors import InvalidFile
from tunewise.report.live_token import file_at_home, is_same, kept, session_key


def test_a_token_is_made_once_and_kept_in_private(tmp_path: Path) -> None:
    token = kept(tmp_path / "token")
    assert len(token) >= 32
    assert kept(tmp_path / "token") == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert kept(tmp_path / "other") != token
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"token", "other"}


def test_the_home_is_made_if_it_is_missing(tmp_path: Path) -> None:
    token = kept(file_at_home(tmp_path / "new" / "home"))
    assert kept(tmp_path / "new" / "home" / "live.token") == token


def test_those_who_start_together_have_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        for number in range(50):
            ready = threading.Barrier(4)
            path = tmp_path / f"token{number}"
            found = list(threads.map(lambda _, path=path, ready=ready: (ready.wait(), kept(path))[1], range(4)))
            assert len(set(found)) == 1


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    kept(tmp_path / "token")
    os.chmod(tmp_path / "token", 0o644)
    with pytest.raises(InvalidFile, match="chmod 600"):
        kept(tmp_path / "token")


@pytest.mark.parametrize("text", ["", "short", "x" * 300, "with spaces in between", "sixteen\ncharacters", "ö" * 20])
def test_what_is_no_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InvalidFile, match="no token"):
        kept(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(InvalidFile, match="holds no token"):
        kept(tmp_path / "token")


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to(tmp_path / "nothing")
    with pytest.raises(InvalidFile, match="leads nowhere"):
        kept(tmp_path / "token")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="nowhere"):
        kept(tmp_path / "nowhere" / "token")
    with pytest.raises(InvalidFile, match="cannot be read"):
        kept(tmp_path)


def test_the_key_of_sessions_is_kept_beside_the_token(tmp_path: Path) -> None:
    token, key = kept(tmp_path / "token"), session_key(tmp_path / "token")
    assert session_key(tmp_path / "token") == key != token
    assert stat.S_IMODE((tmp_path / "token.key").stat().st_mode) == 0o600


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    key = session_key(tmp_path / "token")
    os.chmod(tmp_path / "token.key", 0o644)
    assert session_key(tmp_path / "token") != key


def test_a_key_that_cannot_be_kept_serves_one_run(tmp_path: Path) -> None:
    assert session_key(tmp_path / "nowhere" / "token") != session_key(tmp_path / "nowhere" / "token")


def test_only_the_same_token_is_the_same() -> None:
    assert is_same("a" * 20, "a" * 20)
    assert not is_same("a" * 20, "a" * 19)
    assert not is_same("a" * 20, "")
    assert not is_same("a" * 20, "\udce4" * 20)
