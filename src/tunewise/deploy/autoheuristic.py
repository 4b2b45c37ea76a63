"""AutoHeuristic for any program: the same classes and steps, without torch or a GPU, and nothing runs too early."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tunewise.decision import CHOICE, Feature
from tunewise.deploy import switches
from tunewise.deploy.ahcontext import AHContext, AHMetadata, AHOperation, facts_of_device, metadata
from tunewise.deploy.ahlog import Log, Row, log_file
from tunewise.deploy.feedback import LocalFeedback
from tunewise.errors import InvalidDecision, InvalidModel, InvalidTrial
from tunewise.eventlog import logger
from tunewise.heuristics import Heuristic
from tunewise.session import shelf

Precondition = Callable[[AHMetadata, AHContext], bool]

_log = logger(__name__)
_logs: dict[str, Log] = {}  # those this process has written to: a log is read once, not at every question
_told: set[str] = set()  # the decisions whose features broke: one line each is enough


class AutoHeuristic:
    """A choice between words for one problem: collected where that is switched on, learned where use is switched on.

    `fallback` returns the choice where nothing is learned or the heuristic is unsure. Making one measures nothing.
    `collect`, `use` and `log_path` do what the environment's switches do, for this one alone.
    """

    def __init__(
        self,
        fallback: Callable[[], str],
        choices: Sequence[str],
        feedback: LocalFeedback | Callable[[str], float] | None,
        context: AHContext,
        name: str,
        augment_context: Sequence[AHOperation] | None = None,
        precondition: Precondition | None = None,
        *,
        collect: bool | None = None,
        use: bool | None = None,
        log_path: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        self.fallback, self.choices, self.feedback = fallback, list(choices), feedback
        self.context, self.name, self.precondition = context, name, precondition
        self.augment_context = tuple(augment_context or ())
        self.collected_feedback: dict[str, float] = {}
        self.device, self._collect, self._use = device, collect, use
        self._place = None if log_path is None else Path(log_path).expanduser().absolute()
        _check_choices(name, choices if isinstance(choices, str) else self.choices)

    @cached_property
    def metadata(self) -> AHMetadata:
        """The device, the choices and the name: what preconditions look at, and what a log begins with."""
        return metadata(self.device, self.choices, self.name)

    @property
    def is_collecting(self) -> bool:
        """Whether the choices of this problem are to be measured and logged."""
        return switches.is_collecting(self.name) if self._collect is None else self._collect

    @property
    def is_using(self) -> bool:
        """Whether a heuristic is to be asked."""
        return switches.is_using(self.name) if self._use is None else self._use

    @property
    def log_path(self) -> Path:
        """The file that feedback is logged to."""
        return log_file(switches.log_place() if self._place is None else self._place, self.name)

    def satisfies_precondition(self) -> bool:
        """Return whether there is anything to collect or to learn here."""
        return self.precondition is None or self.precondition(self.metadata, self.context)

    def get_choice(self) -> str:
        """Return the choice: the heuristic's where use is switched on and it is sure, otherwise the fallback's.

        Where collecting is switched on the choices are measured first, unless the log has this problem already.
        """
        if not self.satisfies_precondition():
            return self.fallback()
        if self.is_collecting and self.feedback is not None:
            self.collect()
        ranked = self._ranked() if self.is_using else []
        return ranked[0] if ranked and ranked[0] in self.choices else self.fallback()

    def get_top_k_choices(self, top_k: int, always_included: Sequence[str] | None = None) -> list[str] | None:
        """Return up to `top_k` choices, best first, and those always included; None where no heuristic answers."""
        if not self.satisfies_precondition() or not self.is_using:
            return None
        every = [choice for choice in self._ranked() if choice in self.choices]
        if not every:
            return None
        return list(dict.fromkeys([*every[: max(top_k, 0)], *(always_included or ())]))

    def explain(self) -> str:
        """Return in words what `get_choice` would go by, without measuring anything."""
        if not self.satisfies_precondition():
            return "the precondition does not hold: the fallback decides"
        if not self.is_using:
            return f"use is not switched on: the fallback decides; set TUNEWISE_USE={self.name}, or use=True"
        for name, said in (consulted := list(self._consulted())):
            if isinstance(said, list):
                offered = "" if said[0] in self.choices else ", which is not offered here: the fallback decides"
                return f"{name} answers {said[0]!r}{offered}"
        declined = "; ".join(f"{name} {said}" for name, said in consulted)
        return f"{declined or f'no heuristic for {self.name} is loaded'}: the fallback decides"

    def get_collected_feedback(self, choice: str) -> float | None:
        """Return the milliseconds that this very object has measured of a choice, or None."""
        return self.collected_feedback.get(choice)

    def collect(self, repeats: int | None = None) -> int:
        """Measure every choice until the log has it `repeats` times for this problem; return how many were measured.

        A choice whose feedback raises is logged as failed and named in a warning; the others go on.
        """
        if self.feedback is None:
            raise InvalidDecision(f"{self.name} has no feedback: give a LocalFeedback, or call record with timings")
        log, rows, measured = self._open(), self._rows(self.choices), 0
        wanted = switches.repeats_wanted() if repeats is None else repeats
        for turn in range(wanted):  # one round after another: what slows the machine down slows all choices down
            due = {choice: row for choice, row in rows.items() if log.counts()[row] <= turn}
            self._save(log, due, {choice: self._feedback_ms(choice) for choice in due})
            measured += len(due)
        return measured

    def record(self, timings_ms: Mapping[str, float]) -> int:
        """Log timings that were made elsewhere, those of this problem that the log has already apart; return how many.

        An infinite or missing time (NaN) is a choice that failed. Raises InvalidTrial for what is no time or no choice.
        """
        unknown = [choice for choice in timings_ms if choice not in self.choices]
        if unknown:
            raise InvalidTrial(f"{self.name}: {unknown[0]!r} is not one of the choices {', '.join(self.choices)}")
        log, rows = self._open(), self._rows(timings_ms)
        fresh = [choice for choice, row in rows.items() if not log.counts()[row]]
        self._save(log, rows, {choice: _sound(self.name, choice, timings_ms[choice]) for choice in fresh})
        return len(fresh)

    def _save(self, log: Log, rows: Mapping[str, Row], timings_ms: Mapping[str, float]) -> None:
        if timings_ms:
            log.add((rows[choice], ms) for choice, ms in timings_ms.items())
            self.collected_feedback.update(timings_ms)

    def _feedback_ms(self, choice: str) -> float:
        assert self.feedback is not None
        try:
            return _sound(self.name, choice, self.feedback(choice))
        except Exception as error:  # a choice that cannot run is a fact worth learning from
            _log.warning("%s: choice %s failed with %s: %s", self.name, choice, type(error).__name__, error)
            return math.inf

    def _ranked(self) -> list[str]:
        return next((said for _, said in self._consulted() if isinstance(said, list)), [])

    def _consulted(self) -> Iterator[tuple[str, list[str] | str]]:
        """Yield what every heuristic of this name says: choices, best first, or why it has none."""
        heuristics = shelf.heuristics_for(self.name)
        features = self._features() if heuristics else {}
        for heuristic in heuristics:
            yield heuristic.name, features if isinstance(features, str) else self._consult(heuristic, features)

    def _consult(self, heuristic: Heuristic, features: Mapping[str, Feature]) -> list[str] | str:
        elsewhere = heuristic.why_elsewhere(facts_of_device(self.device))
        if elsewhere is not None:
            return elsewhere
        try:
            ranked = [_word(config) for config in heuristic.rank(features)]
        except Exception as error:  # whatever it is, there is a fallback
            said = f"broke with {type(error).__name__}: {error}"
            shelf.report(heuristic, f"of {heuristic.decision} {said}")
            return said
        return ranked or heuristic.why_silent(features)

    def _features(self) -> dict[str, Feature] | str:
        """Return the features, or why no heuristic can be asked about them."""
        try:
            return self.context.plain(self.augment_context)
        except Exception as error:  # an operation is code of the user's, and there is a fallback
            said = f"features cannot be had: {type(error).__name__}: {error}"
            if self.name not in _told:
                _told.add(self.name)
                _log.warning("%s: its %s", self.name, said)
            return f"is not asked, as the {said}"

    def _open(self) -> Log:
        numbers, words = self.context.get_numerical_and_categorical_features()
        about = {**self.metadata.to_dict(), "numerical_features": numbers, "categorical_features": words}
        fresh = Log(self.log_path, about, [feature.name for feature in self.context.features])
        return _logs.setdefault(fresh.key, fresh)

    def _rows(self, choices: Iterable[str]) -> dict[str, Row]:
        values = [str(value) for value in self.context.plain().values()]
        return {choice: (*values, choice) for choice in choices}


def _check_choices(name: str, choices: Sequence[str]) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidDecision(f"the name {name!r} of an AutoHeuristic is not a word")
    words = [] if isinstance(choices, str) else choices
    if not words or not all(isinstance(choice, str) for choice in words) or len(set(words)) < len(words):
        raise InvalidDecision(f"{name}: the choices {choices!r} are not distinct words")


def _sound(name: str, choice: str, feedback_ms: float) -> float:
    try:
        value = float(feedback_ms)
    except (TypeError, ValueError):
        value = 0.0
    if value <= 0:
        raise InvalidTrial(f"{name}: the feedback {feedback_ms!r} of {choice} is not a time in milliseconds")
    return math.inf if math.isnan(value) else value


def _word(config: Mapping[str, object]) -> str:
    if set(config) != {CHOICE}:
        raise InvalidModel(f"the config {dict(config)} is not one of an AutoHeuristic's choices")
    return str(config[CHOICE])
