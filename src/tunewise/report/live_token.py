"""The token that opens the live page: kept in a private file, so that an open page goes on after a restart."""

import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tunewise import system
from tunewise.decision.drafts import draft
from tunewise.errors import InvalidFile
from tunewise.store.home import prepare

FILE_NAME = "live.token"
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,256}")


def kept(path: Path) -> str:
    """Return the token in a file, which is made with a random one if there is none.

    Raises InvalidFile where others can read the file, or it holds no token.
    """
    with suppress(FileNotFoundError):
        return _read(path)
    _make(path)
    try:
        return _read(path)
    except FileNotFoundError:
        raise InvalidFile(f"{path} is a link that leads nowhere; remove it, or choose another --token-file") from None


def file_at_home(home: Path) -> Path:
    """Return the file of the token in the home, which is made if need be; raises StoreError where it cannot be."""
    prepare(home)
    return home / FILE_NAME


def session_key(token_file: Path) -> str:
    """Return the key that signs sessions: kept beside the token, or one for this run where it cannot be kept."""
    try:
        return kept(token_file.with_name(token_file.name + ".key"))
    except InvalidFile:
        return _random()


def is_same(ours: str, given: str) -> bool:
    """Return whether a token is ours, in a time that does not tell how much of it is."""
    return hmac.compare_digest(ours.encode(), given.encode(errors="replace"))


def _random() -> str:
    return secrets.token_urlsafe(24)


def _read(path: Path) -> str:
    try:
        # A pipe would be waited for.
        with open(os.open(path, os.O_RDONLY | system.NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1_000).decode(errors="replace").strip() if stat.S_ISREG(mode) else ""
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidFile(f"the token in {path} cannot be read: {error.strerror}") from error
    if system.is_read_by_others(mode):
        raise InvalidFile(f"the token in {path} is open to other users; run: chmod 600 {path}")
    if not _TOKEN.fullmatch(text):
        raise InvalidFile(f"{path} holds no token of 16 to 256 letters, digits and ._~-; remove it to get a new one")
    return text


def _make(path: Path) -> None:
    """Put a new token into a file, whole, unless somebody else has just done so."""
    beside = draft(path)
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(_random() + "\n")
        with suppress(FileExistsError):
            os.link(beside, path)
    except OSError as error:
        raise InvalidFile(
            f"the token cannot be kept in {path}: {error.strerror}; choose another --token-file"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()
