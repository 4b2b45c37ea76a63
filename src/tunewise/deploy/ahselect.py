"""AutoHeuristic for Inductor's kernel choices: timings arrive by themselves from `autotune_select_algorithm`."""

import functools
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from tunewise.deploy.ahchoices import words_of
from tunewise.deploy.ahcontext import AHContext, AHOperation
from tunewise.deploy.autoheuristic import AutoHeuristic, Precondition
from tunewise.eventlog import logger

_MOST_WAITING = 256  # a lowering that never comes to autotuning must not be kept for ever
_UNSURE = "unsure"  # the word for no choice at all

_log = logger(__name__)


class AutoHeuristicSelectAlgorithm(AutoHeuristic):
    """A choice between kernels that Inductor offers for one operation, made while torch.compile lowers it.

    Give it the name, the choices and the inputs of the call to `autotune_select_algorithm` that follows. Where
    collecting is switched on, the timings of that call are logged, once a problem. Making one measures nothing.
    """

    def __init__(
        self,
        fallback: Callable[[], Any],
        choices: Sequence[Any],
        input_nodes: Sequence[Any],
        context: AHContext,
        name: str,
        augment_context: Sequence[AHOperation] | None = None,
        precondition: Precondition | None = None,
        *,
        collect: bool | None = None,
        use: bool | None = None,
        log_path: str | Path | None = None,
        device: str | None = None,
    ) -> None:
        self.input_nodes = list(input_nodes)
        self.choicestr2choice = dict(zip(words_of(choices), choices, strict=True))
        self._fallback_caller = fallback
        super().__init__(
            self._fallback_word,
            list(self.choicestr2choice),
            None,
            context,
            name,
            augment_context,
            precondition,
            collect=collect,
            use=use,
            log_path=log_path,
            device=_device_of(self.input_nodes) if device is None else device,
        )
        if self.is_collecting and self.satisfies_precondition():
            _await_timings(self)

    def get_choice_caller(self) -> Any | None:
        """Return the choice itself: the heuristic's where it is used and sure, else the fallback's (None: none)."""
        return self.choicestr2choice.get(self.get_choice())

    def get_top_k_choices_caller(self, top_k: int, always_included: Sequence[str] | None = None) -> list[Any] | None:
        """Return up to `top_k` choices, best first, and those always included; None where no heuristic answers."""
        words = self.get_top_k_choices(top_k, always_included)
        offered = [self.choicestr2choice[word] for word in words or () if word in self.choicestr2choice]
        return offered or None

    def _fallback_word(self) -> str:
        chosen = self._fallback_caller()
        return next((word for word, one in self.choicestr2choice.items() if one is chosen), _UNSURE)


@dataclass(frozen=True)
class _Waiting:
    """One problem whose timings are to come. It holds words, not choices: those would keep whole graphs alive."""

    name: str
    inputs: str
    words: Mapping[str, str]  # by the key of a choice
    log: AutoHeuristic

    def take(self, timings: Mapping[Any, float], inputs: str, name: str, choices: Sequence[Any]) -> bool:
        """Log the timings if they are those of this problem; return whether they were."""
        if (name, inputs) != (self.name, self.inputs):
            return False
        found = {self.words.get(_key(choice)): float(ms) for choice, ms in timings.items()}
        if not found or None in found:
            return False
        broken = {self.words[_key(one)]: inf for one in choices if one.failed and _key(one) in self.words}
        self.log.record({**broken, **{word: ms for word, ms in found.items() if word is not None}})
        return True


class _Desk:
    """Where timings are waited for: one saver in Inductor, whatever the number of problems."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: deque[_Waiting] = deque(maxlen=_MOST_WAITING)

    def add(self, waiting: _Waiting) -> None:
        """Wait for the timings of a problem, once; the latest that asks for a problem gets them."""
        with self._lock:
            same = [one for one in self._waiting if (one.name, one.inputs) == (waiting.name, waiting.inputs)]
            for one in same:
                if one.words.keys() == waiting.words.keys():
                    self._waiting.remove(one)
            self._waiting.append(waiting)
        self._register()

    def save(self, *args: Any) -> None:
        """Hear timings from Inductor: the timings, the name, the inputs and the choices come first. Never raises."""
        try:
            timings, name, input_nodes, choices = args[:4]
            with self._lock:
                waiting = [one for one in self._waiting if one.name == name]
            if waiting:
                inputs = _inputs_key(input_nodes)
                taken = next((one for one in waiting if one.take(timings, inputs, name, choices)), None)
                self._drop(taken)
        except Exception as error:  # whatever it is, the user's compile goes on
            _say_once(f"timings of Inductor are not logged: {type(error).__name__}: {error}")

    def _drop(self, taken: _Waiting | None) -> None:
        with self._lock:
            if taken is not None and taken in self._waiting:
                self._waiting.remove(taken)

    def _register(self) -> None:
        """Have the saver in Inductor's list, once; anybody may have cleared the list meanwhile."""
        from torch._inductor import select_algorithm

        get_cache: Any = getattr(select_algorithm, "get_algorithm_selector_cache", None)
        cache: Any = get_cache() if get_cache is not None else select_algorithm._ALGORITHM_SELECTOR_CACHE
        with self._lock:
            if self.save not in getattr(cache, "feedback_saver_fns", ()):
                select_algorithm.add_feedback_saver(self.save)


_desk = _Desk()


def _await_timings(asking: AutoHeuristicSelectAlgorithm) -> None:
    try:
        _desk.add(_waiting_for(asking))
    except Exception as error:  # whatever it is, the user's compile goes on
        _say_once(f"timings of {asking.name} are not waited for: {type(error).__name__}: {error}")


def _waiting_for(asking: AutoHeuristicSelectAlgorithm) -> _Waiting:
    words, place = asking.choices, asking.log_path
    log = AutoHeuristic(lambda: _UNSURE, words, None, asking.context, asking.name, log_path=place, device=asking.device)
    log.collected_feedback = asking.collected_feedback  # shared: whoever still holds the asking one can read it
    keys = {_key(choice): word for word, choice in asking.choicestr2choice.items()}
    return _Waiting(asking.name, _inputs_key(asking.input_nodes), keys, log)


@functools.cache
def _say_once(said: str) -> None:
    _log.warning("%s", said)


def _key(choice: Any) -> str:
    return f"{type(choice).__name__} {choice.hash_key()}"


def _inputs_key(input_nodes: Sequence[Any]) -> str:
    from torch._inductor.select_algorithm import create_inputs_key

    return str(create_inputs_key(list(input_nodes)))


def _device_of(input_nodes: Sequence[Any]) -> str:
    return str(input_nodes[0].get_device().type) if input_nodes else "cpu"
