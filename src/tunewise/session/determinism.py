"""Determinism: whether the program asked PyTorch for it, in which case nothing is measured and nothing is guessed."""

import sys
import warnings
from collections.abc import Callable
from functools import partial

from tunewise import settings
from tunewise.errors import DeterminismWarning, Nondeterministic

# PyTorch's own switch, once it is imported; nothing here imports it. The hot path calls it directly: this is all that
# determinism costs there. Until torch is there, it says whether it is: the first question after that looks closer.
flag: Callable[[], bool] = partial(sys.modules.__contains__, "torch")
_until_torch = flag


def is_on() -> bool:
    """Return whether `torch.use_deterministic_algorithms(True)` is in force."""
    global flag
    if flag is not _until_torch:
        return flag()
    torch = sys.modules.get("torch")
    found = getattr(torch, "are_deterministic_algorithms_enabled", None)
    if found is None:  # torch is not imported, or not yet as a whole
        return False
    # What the public function calls, where it is still there: it takes a third of the time.
    flag = getattr(getattr(torch, "_C", None), "_get_deterministic_algorithms", found)
    return flag()


def refuse(what: str, reason: str, *, stacklevel: int = 4) -> None:
    """Raise Nondeterministic because something was to be measured; or warn, where the settings say so."""
    said = f"{what} is not tuned: {reason}, so nothing may be measured"
    if settings.current().on_deterministic == "warn":
        told = f"{said}; the answer is the recorded one or the default"
        warnings.warn(told, DeterminismWarning, stacklevel=stacklevel)
        return
    raise Nondeterministic(
        f"{said}; tune before that, or set TUNEWISE_ON_DETERMINISTIC=warn to go on with the recorded answer"
    )
