import os
import stat

import pytest

from tunewise.errors import StoreError
from tunewise.store import SqliteStore, home
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:50 / /home rw shared:2 - nfs4 server:/home rw
31 30 0:51 / /home/me/local\\040disk rw - xfs /dev/sdb rw
32 22 0:52 / /mnt/cloud rw - fuse.sshfs me@there:/ rw
33 22 0:53 / /mnt/box rw - fuse.fuse-overlayfs none rw
bad line
"""


def _refused(path):
    with pytest.raises(StoreError) as caught:
        SqliteStore(path).add(subject(), [timed(8)])
    return str(caught.value)


def test_directory_and_files_are_made_private(tmp_path):
    old = os.umask(0)
    try:
        SqliteStore(tmp_path / "a" / "b").add(subject(), [timed(8)])
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a" / "b").iterdir()}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777, 0o720])
def test_directory_that_others_can_write_is_refused(tmp_path, mode):
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(mode)
    assert "chmod go-w" in _refused(tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_directory_that_others_can_only_read_is_used(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o755)
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])


def test_symbolic_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    assert "symbolic link" in _refused(tmp_path / "home")


def test_dangling_link_is_refused(tmp_path):
    (tmp_path / "home").symlink_to(tmp_path / "nowhere")
    assert _refused(tmp_path / "home")
    assert not (tmp_path / "nowhere").exists()


def test_database_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in _refused(tmp_path / "home")
    assert not (tmp_path / "elsewhere").exists()


def test_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "home").write_text("")
    assert "cannot be made" in _refused(tmp_path / "home")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_directory_of_another_user_is_refused(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    os.chown(tmp_path / "home", 12345, 12345)
    assert "belongs to user 12345" in _refused(tmp_path / "home")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a link away needs root")
def test_link_of_another_user_on_the_way_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    assert "another user" in _refused(tmp_path / "link" / "home")


def test_shared_directory_is_read_and_never_written(tmp_path):
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    (tmp_path / "home").chmod(0o777)
    store = SqliteStore(tmp_path / "home", is_shared=True)
    assert store.trials(subject()) == [timed(8)]
    with pytest.raises(StoreError, match="reading only"):
        store.add(subject(), [timed(8)])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", "ext4"),
        ("/home/me/.cache", "nfs4"),
        ("/home/me/local disk/x", "xfs"),
        ("/homely", "ext4"),
        ("/mnt/cloud/a", "fuse.sshfs"),
    ],
)
def test_file_system_is_that_of_the_nearest_mount(tmp_path, path, kind):
    (tmp_path / "mounts").write_text(MOUNTS)
    assert home.file_system(path, tmp_path / "mounts") == kind


def test_system_that_does_not_say_counts_as_local(tmp_path):
    assert home.file_system(tmp_path, tmp_path / "missing") == ""
    assert home.why_remote(tmp_path) is None


@pytest.mark.parametrize(("kind", "is_remote"), [("lustre", True), ("cifs", True), ("fuse.sshfs", True), ("9p", True)])
def test_network_file_systems_are_known(tmp_path, monkeypatch, kind, is_remote):
    monkeypatch.setattr(home, "file_system", lambda path: kind)
    assert (home.why_remote(tmp_path) is not None) == is_remote


@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs", "btrfs", "fuse.fuse-overlayfs", ""])
def test_local_file_systems_are_used(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(home, "file_system", lambda path: kind)
    assert home.why_remote(tmp_path) is None
