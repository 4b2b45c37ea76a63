"""Connections to the live page: one that asks nothing is let go, so that it does not take the place of a viewer."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 10.0


class Impatient(H11Protocol):
    """A connection that is closed where no request has come for a while, also one that sends half of one for ever."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._answered: object = None  # the request that was answered last when we looked last
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._look = self.loop.call_later(PATIENCE_S, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        request: Any = self.cycle  # None before the first one
        if request is self._answered:
            self.transport.close()
            return
        self._answered = request if request.response_complete else None
        self._look = self.loop.call_later(PATIENCE_S, self._close_if_idle)
