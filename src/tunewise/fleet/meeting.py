"""Where the ranks of a group meet: one board for all, which outlives any of them where they share a file system."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tunewise import settings
from tunewise.fleet import places
from tunewise.fleet.boards import Board, Lost, wait_for
from tunewise.fleet.places import About
from tunewise.fleet.torch_board import TorchBoard, innermost

_BOARD = "board"  # key in the group's store: which board it uses
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_PATIENCE_S, _SHARE = 10.0, 0.25  # for the group's store, and for ranks that have not come: of the limit


@dataclass(frozen=True)
class Group:
    """What torch.distributed knows of a group."""

    store: Any
    rank: int
    size: int

    @property
    def address(self) -> str:
        """Where its store listens, for as long as that tells it from other groups on this machine; or empty."""
        port = getattr(innermost(self.store), "port", None)
        return f"{port}/{self.size}" if isinstance(port, int) else ""

    @property
    def file(self) -> Path | None:
        """The file that its ranks met in, if they did."""
        path = getattr(innermost(self.store), "path", None)
        return Path(path).absolute() if isinstance(path, str) else None


def meet(group: Group, limit_s: float) -> Board:
    """Return the board that all ranks of a group use; raises Lost where that cannot be found out.

    Where one file system is known to be everybody's, the board is a directory in it: the first rank that asks makes it
    and publishes in the group's store where it is. The store itself would do, but it lives in a rank, which may die.
    """
    patience_s = min(_MOST_PATIENCE_S, _SHARE * limit_s)
    try:
        store = TorchBoard(group.store, patience_s)
        about = _parsed(store.read(_BOARD) or _offered(store, group, patience_s))
    except Lost:
        found = places.find(group.address) if group.address else None
        if found is None:
            raise
        return places.enter(found, group.rank, group.size)
    if about.kind == "torch":
        return store
    store.close()
    return places.enter(about, group.rank, group.size)


def _offered(store: Board, group: Group, patience_s: float) -> str:
    """Offer a board to the group; return the one that stands, which may be another rank's."""
    about = _made(group) if _shares_files(store, group, patience_s) else About("torch")
    said, stands = msgspec.json.encode(about).decode(), ""
    try:
        stands = store.publish(_BOARD, said)
    finally:
        if about.kind == "files" and stands != said:
            places.discard(about.place)
    if about.kind == "files" and stands == said:
        places.open_to_all(about)
    return stands


def _made(group: Group) -> About:
    beside = group.file.parent if group.file else None
    try:
        places.sweep(beside)
        return places.make(group.address, beside)
    except (OSError, Lost):  # no room, or a file system without links
        return About("torch")


def _shares_files(store: Board, group: Group, patience_s: float) -> bool:
    """Return whether all ranks see one file system: by how they met, or because each of them says so in time."""
    is_here = getattr(innermost(group.store), "host", None) in _LOOPBACK
    if group.file or is_here or settings.variable("LOCAL_WORLD_SIZE") == str(group.size):  # torchrun: all run here
        return True
    try:
        mine = places.identity()
    except (OSError, Lost):
        mine = "nowhere"
    store.publish(f"here/{group.rank}", mine)
    until = time.monotonic() + patience_s
    return all(_said_by(store, rank, until) == mine for rank in range(group.size))


def _said_by(store: Board, rank: int, until: float) -> str | None:
    """Return where a rank is; None if it does not say so in time, or another has made up its mind by then."""
    return wait_for(lambda: store.read(f"here/{rank}") or ("" if store.read(_BOARD) else None), until)


def _parsed(said: str) -> About:
    try:
        return msgspec.json.decode(said, type=About)
    except msgspec.MsgspecError as error:
        raise Lost(f"what the ranks published is not a board: {error}") from None
