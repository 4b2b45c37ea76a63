"""What systems do not have in common, where one has less; whole programs are in session/test_other_systems.py."""

import os
import select
import socket

import pytest

from tunewise import system


def test_a_socket_is_readable_once_something_is_there_also_without_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_poll in (True, False):
        if not has_poll:
            monkeypatch.delattr(select, "poll")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            assert not system.is_readable(ours.fileno(), 0.0)
            theirs.send(b"!")
            assert system.is_readable(ours.fileno(), 0.0)


def test_without_owners_everything_is_ours_and_no_mode_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    os.chmod(tmp_path, 0o777)
    assert system.is_written_by_others(os.stat(tmp_path).st_mode)
    monkeypatch.delattr(os, "geteuid")
    assert system.is_ours(os.stat("/"))
    assert not system.is_written_by_others(os.stat(tmp_path).st_mode)
    assert not system.is_read_by_others(os.stat(tmp_path).st_mode)
    assert not system.has_lent_rights()
    assert system.user() is system.user_home() is None


def test_cores_are_counted_where_no_affinity_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert system.cores() == 7
