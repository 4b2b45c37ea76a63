"""The ledger of a home: which facts in shared stores it measured or imported itself."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tunewise import system
from tunewise.decision import Origin, Subject, Trial, Verdict
from tunewise.decision.origin import origin_of
from tunewise.errors import StoreError
from tunewise.formats import facts
from tunewise.store.home import prepare

FILE_NAME = "measured-here"


class Ledger:
    """The identities of facts, one a line, in a file of a private home. Lines are added and never changed.

    An identity is a digest of a whole fact, so nobody can give another fact the same one. Any number of processes add
    lines at once. Where the file cannot be written, the identities are known until the process ends.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE_NAME
        # No lock guards them: identities are only added, and lines that two threads read at once are read twice.
        self._known: set[bytes] = set()
        self._read_bytes = 0

    def add(self, subject: Subject, given: Iterable[Trial | Verdict]) -> None:
        """Enter facts about a subject."""
        digest = subject.digest
        identities = [_identity(digest, fact) for fact in given]
        self._known.update(identities)
        with suppress(OSError, StoreError):
            self._append("".join(f"\n{identity.hex()}\n" for identity in identities).encode())

    def origin(self, digest: str, fact: Trial | Verdict) -> Origin:
        """Return where a fact about the subject of a digest comes from."""
        identity = _identity(digest, fact)
        if identity not in self._known:
            self._read()
        return "own" if identity in self._known else origin_of(fact.run)

    def _append(self, raw: bytes) -> None:
        prepare(self._path.parent)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.NOFOLLOW, 0o600)
        try:
            os.write(fd, raw)
        finally:
            os.close(fd)

    def _read(self) -> None:
        """Read the lines that were added since the last time; a torn one is nobody's identity."""
        with suppress(OSError, StoreError):
            size = self._path.stat().st_size
            if size == self._read_bytes:
                return
            prepare(self._path.parent)
            with open(self._path, "rb") as stream:
                stream.seek(self._read_bytes if size > self._read_bytes else 0)
                raw = stream.read()
                whole = raw.rfind(b"\n") + 1
                self._read_bytes = stream.tell() - len(raw) + whole
            for line in raw[:whole].split():
                with suppress(ValueError):
                    self._known.add(bytes.fromhex(line.decode("ascii", "replace")))


def _identity(digest: str, fact: Trial | Verdict) -> bytes:
    body = facts.write_trial(fact) if isinstance(fact, Trial) else facts.write_verdict(fact)
    return facts.identity(digest, body)
