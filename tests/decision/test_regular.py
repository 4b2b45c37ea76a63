"""Regular files: read as they are; pipes and devices are refused at once."""

import os
from pathlib import Path

import pytest

from tunewise.decision.regular import open_regular


def test_a_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"said")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as stream:
        assert stream.read() == b"said"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(tmp_path / name)


def test_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "link")


def test_what_cannot_be_opened_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
