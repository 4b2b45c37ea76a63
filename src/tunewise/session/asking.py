"""Asking somebody else's code: a heuristic that raises, hangs or talks nonsense is reported once, and passed over."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tunewise.session import shelf

ANSWER_S = 2.0  # for a rule of thumb; whoever takes longer is passed over
_BEYOND = 1  # more than allowed, to see that there was more


class Silent(Exception):
    """A heuristic gave no answer that can be used; the text is the end of a sentence that begins with its name."""


def ask(who: shelf.Source, question: Callable[[], Any], most: int) -> list[Any]:
    """Return what a heuristic answers, at most `most` things; raises Silent where it does not, with the reason.

    It runs in a thread of its own, which cannot be stopped: where it hangs, it is left behind and never asked again.
    """
    if shelf.is_banned(who):
        raise Silent("did not answer in time before and is not asked again")
    found: list[Any] = []
    trouble: list[str] = []
    thread = threading.Thread(target=_run, args=(question, most, found, trouble), daemon=True)
    with careful(who):  # there may be no more threads
        thread.start()
    thread.join(ANSWER_S)
    if thread.is_alive():
        shelf.ban(who)
        trouble = [f"did not answer within {ANSWER_S:g} s"]
    if trouble:
        shelf.report(who, trouble[0])
        raise Silent(trouble[0])
    if len(found) > most:
        shelf.report(who, f"proposed more than the {most} it may; the rest is left out")
    for strange in (one for one in found[:most] if not isinstance(one, dict)):
        shelf.report(who, f"proposed a {type(strange).__name__}, which is no config")
    return found[:most]


@contextmanager
def careful(who: shelf.Source) -> Iterator[None]:
    """Report whatever breaks inside, and raise Silent: what a heuristic says of itself is somebody else's code too."""
    try:
        yield
    except Exception as error:
        said = shelf.broke(error)
        shelf.report(who, said)
        raise Silent(said) from error


def _run(question: Callable[[], Any], most: int, found: list[Any], trouble: list[str]) -> None:
    try:
        answer = question()
        if isinstance(answer, str | bytes | Mapping) or not hasattr(answer, "__iter__"):
            trouble.append(f"gave a {type(answer).__name__} instead of a list of configs")
            return
        found.extend(dict(one) if isinstance(one, Mapping) else one for one in islice(answer, most + _BEYOND))
    except BaseException as error:  # code of somebody else, in a thread of its own
        trouble.append(shelf.broke(error))
