"""Requests: what each rank asks of a decision, compared, because ranks may run different versions of a program."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tunewise.decision import Config, Declaration, Space, Subject, canonical
from tunewise.fleet import notes, presence
from tunewise.fleet.boards import Board, wait_for

_SHOWN, _SHOWN_PARTS = 80, 3  # characters of a part, and parts, in a warning
_LONGEST = 1000  # characters of a part; of a longer one a digest is compared
_LISTED = 100  # values of a parameter that are compared, its length and last value apart
_MOST_PATIENCE_S, _SHARE = 5.0, 0.25  # for ranks that have not asked yet: of the limit
# What else must match for a measurement to count is left to each rank: the hardware of one job may be mixed, and the
# code of a function may hold its rank.
_ENVIRONMENT = ("library.", "variable.", "python", "version")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of this rank: under which key ranks find its answer, and the request that it belongs to."""

    declaration: Declaration
    key: str
    place: str  # key of the requests it is compared with
    parts: Mapping[str, str]
    request: str  # digest of the parts


class Requests:
    """The requests of this rank and of the others.

    The first request of each rank for a decision is compared with the first ones of the others, the second with the
    second ones, and so on: a program may declare a decision anew, with other threads for example.
    """

    def __init__(self, board: Board | None, rank: int, size: int, limit_s: float) -> None:
        self._board, self._rank, self._size = board, rank, size
        self._patience_s = min(_MOST_PATIENCE_S, _SHARE * limit_s)
        self._me = presence.name(rank)
        self._lock = threading.RLock()
        self._numbers: dict[str, dict[str, int]] = {}  # decision -> request -> number
        self._heard: dict[str, dict[int, Mapping[str, str]]] = {}  # place -> rank -> parts
        self._differing: dict[str, list[str]] = {}  # place -> names of parts; of what was compared
        self._names: dict[int, str] = {}  # of the processes of other ranks
        self._absent: set[int] = set()  # ranks that were waited for in vain

    def asked(self, declaration: Declaration, subject: Subject) -> Asked:
        """Return a question with the key of its answer, which does not depend on what may differ between ranks."""
        parts = parts_of(declaration, subject)
        request = canonical.digest(parts)[:40]
        with self._lock:
            known = self._numbers.setdefault(declaration.name, {})
            number = known.setdefault(request, len(known))
        key = canonical.digest([declaration.name, dict(subject.problem), number])[:40]
        return Asked(declaration, key, f"asks/{canonical.digest(declaration.name)[:40]}/{number}", parts, request)

    def difference(self, asked: Asked) -> list[str]:
        """Return the parts in which requests differ, as far as ranks have asked; raises Lost.

        The first time it waits a little for the others, but never twice for a rank that did not come.
        """
        if self._board is None:
            return []
        heard = self._heard.setdefault(asked.place, {self._rank: asked.parts})
        names = self._differing.get(asked.place)
        if names is None:
            self._board.publish(f"{asked.place}/{self._rank}", notes.write(notes.Request(dict(asked.parts), self._me)))
            self._wait(self._board, asked.place, heard)
        elif len(heard) < self._size and self._board.read(f"{asked.place}/differ") is not None:
            self._read(self._board, asked.place, heard)
        else:
            return names
        names = self._differing[asked.place] = _differing(heard)
        if names:
            self._board.publish(f"{asked.place}/differ", self._me)
        return names

    def described(self, asked: Asked, names: list[str]) -> str:
        """Return in words which rank asks for what, for some parts."""
        heard = self._heard.get(asked.place, {})
        said = [_described(name, heard) for name in names[:_SHOWN_PARTS]]
        rest = len(names) - len(said)
        return "; ".join(said) + (f"; {rest} more parts differ" if rest > 0 else "")

    def _wait(self, board: Board, place: str, heard: dict[int, Mapping[str, str]]) -> None:
        def look() -> str | None:
            self._read(board, place, heard)
            missing = [rank for rank in range(self._size) if rank not in heard and self._may_come(rank)]
            return None if missing else "all"

        wait_for(look, time.monotonic() + self._patience_s)
        self._absent.update(rank for rank in range(self._size) if rank not in heard)

    def _may_come(self, rank: int) -> bool:
        return rank not in self._absent and not (rank in self._names and presence.is_idle(self._names[rank]))

    def _read(self, board: Board, place: str, heard: dict[int, Mapping[str, str]]) -> None:
        for rank in range(self._size):
            text = None if rank in heard else board.read(f"{place}/{rank}")
            if text is not None:
                request = notes.read(text, notes.Request) or notes.Request({"tunewise": "another version"})
                self._names[rank], heard[rank] = request.by, request.parts
                self._absent.discard(rank)


def parts_of(declaration: Declaration, subject: Subject) -> dict[str, str]:
    """Return what a rank asks, part by part, in the order in which differences are told."""
    must = {name: value for name, value in subject.environment.must.items() if name.startswith(_ENVIRONMENT)}
    return {
        **_of_space(declaration.space),
        "default": _config(declaration.default),
        "features": ", ".join(sorted(subject.problem)),
        **{f"buckets.{name}": _plain(bucket) for name, bucket in declaration.buckets.items()},
        **{f"policy.{name}": str(value) for name, value in subject.policy},
        **{f"check.{one.name}": _plain(getattr(declaration.check, one.name)) for one in fields(declaration.check)},
        **{name: _short(str(value)) for name, value in must.items()},
    }


def _of_space(space: Space) -> dict[str, str]:
    found = {f"space.{param.name}": _values(param.values) for param in space.params}
    return {**found, "space.rules": _short("; ".join(sorted(rule.text for rule in space.rules)))}


def _values(values: Any) -> str:
    """Return the values of a parameter as text, in no order where all are listed: a set has none."""
    if len(values) <= _LISTED:
        return _short(", ".join(map(repr, sorted(values, key=_place))))
    return _short(f"{len(values)} values, {', '.join(map(repr, values[:_LISTED]))} to {values[-1]!r}")


def _place(value: Any) -> tuple[bool, Any]:
    """Return what values are sorted by: numbers by size, then all others by their text."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else repr(value)


def _config(config: Config) -> str:
    return _short(" ".join(f"{name}={config[name]!r}" for name in sorted(config)))


def _plain(value: Any) -> str:
    return "a function" if callable(value) else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_SHOWN]}... sha256:{canonical.digest(text)[:16]}"


def _differing(heard: Mapping[int, Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for rank in sorted(heard) for name in heard[rank])
    return [name for name in names if len({parts.get(name) for parts in heard.values()}) > 1]


def _described(name: str, heard: Mapping[int, Mapping[str, str]]) -> str:
    ranks: dict[str | None, list[int]] = {}
    for rank in sorted(heard):
        ranks.setdefault(heard[rank].get(name), []).append(rank)
    said = [f"{_brief(value)} on {_of(numbers)}" for value, numbers in ranks.items()]
    return f"{_brief(name)} is {' and '.join(said)}"


def _brief(value: str | None) -> str:
    if not value:
        return "empty" if value == "" else "missing"
    shown = value if len(value) <= _SHOWN else f"{value[: _SHOWN // 2]}...{value[-_SHOWN // 2 :]}"
    return repr(shown)[1:-1] if not shown.isprintable() else shown


def _of(ranks: list[int]) -> str:
    """Return ranks as people write them: `rank 3`, `ranks 0-2, 5`."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    said = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return f"rank {said}" if len(ranks) == 1 else f"ranks {said}"
