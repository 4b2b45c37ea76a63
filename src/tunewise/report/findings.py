"""What a report tells, gathered from data, a model and the store before a word of it is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec

from tunewise.decision import Config
from tunewise.formats.dataset import DataSet
from tunewise.learn.data_report import DataReport, report_of
from tunewise.learn.validate import Validation, validate
from tunewise.models import Model
from tunewise.report.importance import Importance, importance
from tunewise.report.progress import Progress, progress
from tunewise.session.recall import Measured


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything a report tells of one decision; None where there is nothing to tell."""

    decision: str
    written: str  # the day, as 2026-01-31
    data: DataReport
    scores: Validation  # without a model: of the default and the best single choice
    model: Model | None = None
    importance: Importance | None = None
    progress: Progress | None = None

    @property
    def judged_on(self) -> str:
        """What the figures of the model come from, as the end of a sentence."""
        return "on the data learned from" if self.scores.is_seen else "on other data than learned from"

    @property
    def held_out(self) -> Mapping[str, float]:
        """What the model's card says of problems that were held out in training; empty where it was not judged."""
        scores = self.model.card.scores if self.model is not None else {}
        return scores if "regret" in scores else {}

    def as_json(self) -> dict[str, Any]:
        """Return the findings as plain values; curves are left to the page."""
        shares = self.importance.shares if self.importance else ()
        return {
            "decision": self.decision,
            "data": self.data.to_json(),
            "scores": self.scores.as_json(),
            "has_model": self.model is not None,
            "is_seen": self.scores.is_seen,
            "importance": {one.name: one.share for one in shares},
            "progress": self.progress.as_json() if self.progress else None,
        }


class _Abstains:
    """Stands for a model where there is none: it never answers."""

    choices: tuple[Config, ...] = ()

    def rank(self, features: Mapping[str, object], /) -> list[int]:
        return []


def gather(
    data: DataSet, model: Model | None = None, trials: Iterable[Measured] = (), *, today: date | None = None
) -> Findings:
    """Return the findings of a data set, of a model on it, and of the trials the store remembers."""
    model = model and _in_order(model, data)
    return Findings(
        decision=data.decision,
        written=(today or date.today()).isoformat(),
        data=report_of(data),
        scores=validate(model or _Abstains(), data),
        model=model,
        importance=importance(model, data) if model is not None else None,
        progress=progress(trials),
    )


def _in_order(model: Model, data: DataSet) -> Model:
    """Return the model with its choices' parameters in the order of the data: a page has them in one."""
    order = list(data.configs[0]) if data.configs else []
    choices = tuple({**{name: choice[name] for name in order if name in choice}, **choice} for choice in model.choices)
    return msgspec.structs.replace(model, choices=choices)
