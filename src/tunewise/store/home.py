"""The store's directory: made private, and refused where others could tamper with it or SQLite could not be trusted."""

import os
import stat
from pathlib import Path

from tunewise import system
from tunewise.errors import StoreError

# SQLite's locks and shared memory do not hold between machines.
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs3", "nfs4"}
    | {"ocfs2", "orangefs", "pvfs2", "smb3", "smbfs"}
)
_LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs", "fuse.lxcfs"})
_MOUNTS = Path("/proc/self/mountinfo")


def prepare(home: Path) -> None:
    """Create a private directory if it is missing; raises StoreError with the reason if it cannot be trusted."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        said = f"{error.strerror}; set TUNEWISE_HOME to another"
        raise StoreError(f"the store's directory {home} cannot be made: {said}") from None
    reason = why_unsafe(home) or why_remote(home)
    if reason is not None:
        raise StoreError(reason)


def why_unsafe(home: Path) -> str | None:
    """Return why other users could change what is read from a directory, or None if they cannot."""
    for above in home.absolute().parents:
        if system.has_owners() and above.is_symlink() and above.lstat().st_uid not in (0, system.user()):
            return f"{above}, above the store, is a symbolic link of another user; set TUNEWISE_HOME to a real path"
    found = home.lstat()
    if stat.S_ISLNK(found.st_mode):
        return f"the store's directory {home} is a symbolic link; set TUNEWISE_HOME to where it leads"
    if not stat.S_ISDIR(found.st_mode):
        return f"the store's place {home} is not a directory; set TUNEWISE_HOME to another one"
    if not system.is_ours(found):
        return f"the store's directory {home} belongs to user {found.st_uid}, not to us; set TUNEWISE_HOME to your own"
    if system.is_written_by_others(found.st_mode):
        return f"the store's directory {home} can be written by other users; run: chmod go-w {home}"
    return None


def why_remote(home: Path) -> str | None:
    """Return why SQLite must not be used in a directory, or None where the file system is a local one."""
    kind = file_system(home)
    if kind in _NETWORK or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE):
        return (
            f"the store's directory {home} is on a network file system ({kind}), where SQLite loses data; set "
            "TUNEWISE_HOME to a local directory, or share results by PostgreSQL or `tunewise store export`"
        )
    return None


def file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system a path lies on, such as `ext4`; empty where the system does not say."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    real, best, kind = os.path.realpath(path), "", ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not source:
            continue
        point = fields[4].encode().decode("unicode_escape")
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, source.split()[0]
    return kind
