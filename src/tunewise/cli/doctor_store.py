"""What `tunewise doctor` finds out about the home and the store, in bounded time."""

import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tunewise import settings
from tunewise.cli.doctor_finding import Finding
from tunewise.cli.screen import count, seconds, size
from tunewise.errors import StoreWarning
from tunewise.report.wording import span
from tunewise.session.context import current_store
from tunewise.settings import Place, shown
from tunewise.store import StoreInfo
from tunewise.store.home import file_system, why_remote, why_unsafe

PATIENCE_S = 15.0
LOW_BYTES = 2**30
_T = TypeVar("_T")


def store_and_home() -> Iterator[Finding]:
    """Yield the home, the store, when it was last added to, and its layers."""
    found = list(_store())  # makes the home if it is missing
    yield _home(settings.current().home)
    yield from found


def _home(home: Path) -> Finding:
    if settings.current().store is not None and not home.exists():
        return Finding("home", f"{home} (not made yet: the store lies elsewhere)")
    if not home.is_dir():
        return Finding("home", f"{home} is not a directory; set TUNEWISE_HOME to one that can be made", "trouble")
    reason = why_unsafe(home) or why_remote(home)
    if reason is not None:
        return Finding("home", reason, "trouble")
    free = shutil.disk_usage(home).free
    mode = f"{home.stat().st_mode & 0o777:04o}"
    told = f"{home} ({file_system(home) or 'unknown file system'}, mode {mode}, {free / 2**30:.1f} GiB free)"
    if free < LOW_BYTES:
        return Finding(
            "home", f"{told}; make room: a full disk keeps results in memory only", "warning", {"free_bytes": free}
        )
    return Finding("home", told, "ok", {"free_bytes": free})


def _free_at(place: Place) -> int | None:
    """Return how much room there is where a store's file lies; None for a server's."""
    if not isinstance(place, Path):
        return None
    return shutil.disk_usage(place if place.is_dir() else place.parent).free


def _store() -> Iterator[Finding]:
    place = settings.current().store or settings.current().home
    start = time.perf_counter()
    try:
        held, told = within(PATIENCE_S, _looked_at)
    except TimeoutError:
        yield Finding("store", f"{shown(place)} did not answer within {PATIENCE_S:g} s; look after it", "trouble")
        return
    read_s = time.perf_counter() - start
    if held.trouble is not None:
        yield Finding("store", held.trouble, "trouble")
    else:
        is_new = bool(told) and not any(layer.trouble for layer in held.layers)  # the old one was set aside
        free = _free_at(place)
        is_low = free is not None and free < LOW_BYTES
        said = [_described(held, read_s), *(told if is_new else ()), *(["its disk is nearly full"] if is_low else ())]
        said += ["it can be read but not written: nothing new is kept"] if held.is_read_only else []
        numbers = _numbers(held, read_s) | ({} if free is None else {"free_bytes": free})
        yield Finding("store", "; ".join(said), "warning" if is_new or is_low or held.is_read_only else "ok", numbers)
        yield _activity(held)
    for number, layer in enumerate(held.layers, 1):
        yield _layer(f"layer-{number}", layer)


def _looked_at() -> tuple[StoreInfo, list[str]]:
    """Return what the store holds, and what programs would be warned of when they open it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        held = current_store().info()
    return held, [str(warning.message) for warning in caught]


def _described(held: StoreInfo, read_s: float) -> str:
    holds = {"trial": held.trials, "verdict": held.verdicts, "problem": held.subjects, "miss": held.misses}
    counts = ", ".join(count(number, thing) for thing, number in holds.items())
    layers = f", over {count(len(held.layers), 'layer')}" if held.layers else ""
    where = f"{held.place}: " if held.postgres else ""
    return f"{where}{counts}, {size(held.size_bytes)}, schema {held.schema}{layers}, read in {seconds(read_s)}"


def _numbers(held: StoreInfo, read_s: float) -> dict[str, float]:
    return {
        "trials": held.trials,
        "verdicts": held.verdicts,
        "problems": held.subjects,
        "misses": held.misses,
        "size_bytes": held.size_bytes,
        "schema": held.schema,
        "read_s": read_s,
    }


def _activity(held: StoreInfo) -> Finding:
    """Return how long ago the last fact was measured: whether that is too long depends on who tunes here."""
    now, ages = time.time(), {}
    for name, at in (("last_trial_age_s", held.last_trial_at), ("last_verdict_age_s", held.last_verdict_at)):
        if at is not None:
            ages[name] = max(0.0, now - at)
    if not ages:
        return Finding("activity", "nothing has been measured yet")
    told = " and ".join(f"the {name.split('_')[1]} {span(age_s)} ago" for name, age_s in ages.items())
    return Finding("activity", f"the last that was measured: {told}", "ok", ages)


def _layer(name: str, held: StoreInfo) -> Finding:
    if held.trouble is not None:
        said = f"{held.trouble}; correct TUNEWISE_LAYERS, which names it as a layer, or unset it"
        return Finding(name, said, "warning")
    numbers = {"trials": held.trials, "verdicts": held.verdicts, "size_bytes": held.size_bytes, "schema": held.schema}
    return Finding(
        name, f"{held.place}: {count(held.trials, 'trial')}, {count(held.verdicts, 'verdict')}", "ok", numbers
    )


def within(patience_s: float, work: Callable[[], _T]) -> _T:
    """Return what `work` gives, or raises; raises TimeoutError if that takes longer, and leaves it to itself."""
    done: list[_T] = []
    broke: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:
            broke.append(error)

    thread = threading.Thread(target=run, daemon=True, name="tunewise-doctor")
    thread.start()
    thread.join(patience_s)
    if broke:
        raise broke[0]
    if not done:
        raise TimeoutError
    return done[0]
