"""What gives access to the live page: its token, and sessions that a browser keeps in its cookie instead of it."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable

from tunewise.report.live_token import is_same

LIFETIME_S = 24 * 60 * 60
_VALUE = re.compile(r"([0-9]{1,12})\.[A-Za-z0-9_-]{32}\.[0-9a-f]{64}")


class Access:
    """Knows the token, opens sessions and knows them again.

    The value of a session holds its end, a random part and a signature of both. The server keeps nothing for a session,
    so no number of them costs memory. The key is random and independent of the token: nobody who has a value can guess
    the token with it. The signature covers the token too, so another token ends all sessions.
    """

    def __init__(self, token: str, key: str, clock: Callable[[], float] = time.time) -> None:
        self._token, self._key, self._clock = token, key, clock

    def is_token(self, given: str) -> bool:
        """Return whether a text is the token."""
        return is_same(self._token, given)

    def open_session(self) -> str:
        """Return the value of a new session."""
        text = f"{int(self._clock()) + LIFETIME_S}.{secrets.token_urlsafe(24)}"
        return f"{text}.{self._signature(text)}"

    def is_session(self, value: str) -> bool:
        """Return whether a value is that of a session which we opened, and which has not ended."""
        match = _VALUE.fullmatch(value)
        if match is None:
            return False
        text, _, signature = value.rpartition(".")
        is_ours = hmac.compare_digest(self._signature(text), signature)
        return is_ours and 0 < int(match[1]) - self._clock() <= LIFETIME_S

    def _signature(self, text: str) -> str:
        return hmac.new(self._key.encode(), f"{self._token} {text}".encode(), hashlib.sha256).hexdigest()
