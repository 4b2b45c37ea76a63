"""Names of living decisions: two different ones with one name would mix their memories."""

import os
import sys
import threading
import weakref

from tunewise.decision import Declaration
from tunewise.errors import DuplicateDecision

_declared: "weakref.WeakValueDictionary[str, Declaration]" = weakref.WeakValueDictionary()
_places: dict[str, tuple[str, int]] = {}
_lock = threading.RLock()


def register(decision: Declaration) -> None:
    """Refuse a second living decision of one name, unless the same line declares it again, or a prompt or notebook."""
    place = _declared_at()
    with _lock:
        other = _declared.get(decision.name)
        before = _places.get(decision.name)
        if other is not None and before is not None and before != place and os.path.exists(place[0]):
            spots = " and ".join(f"{file}:{line}" for file, line in (before, place))
            raise DuplicateDecision(f"two decisions are named {decision.name!r} ({spots}): rename one of them")
        _declared[decision.name] = decision
        _places[decision.name] = place


def _declared_at() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("tunewise.session", "tunewise.decision", "tunewise.deploy.autotuner", "dataclasses")
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
