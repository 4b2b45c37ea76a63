"""What comparisons with max-autotune come to: for every op and type, how each way compiles and runs beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from tunewise.deploy.inductor.comparing import MAX_AUTOTUNE, Compared, Run

ALL = "all"
_TIE = 0.03  # run times closer than this are equal: a model is held to it, and noise is below it


@dataclass(frozen=True, slots=True)
class Score:
    """One way beside max-autotune on some programs: ratios of its times to theirs, as geometric means.

    `wins` and `losses` are programs that run more than 3 % faster or slower.
    """

    op: str
    dtype: str
    way: str
    programs: int
    compile_ratio: float
    run_ratio: float
    worst_run_ratio: float
    wins: int
    losses: int

    @property
    def ties(self) -> int:
        """How many programs run about as fast."""
        return self.programs - self.wins - self.losses

    def as_json(self) -> dict[str, Any]:
        """Return the score as plain values, without what it is about."""
        return {
            "programs": self.programs,
            "compile_ratio": self.compile_ratio,
            "run_ratio": self.run_ratio,
            "worst_run_ratio": self.worst_run_ratio,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
        }


def scores_of(compared: Iterable[Compared]) -> list[Score]:
    """Return a score for every op, type and way, and for all of them together; programs with trouble do not count."""
    pairs: dict[tuple[str, str, str], list[tuple[Run, Run]]] = {}
    for one in compared:
        if one.trouble or MAX_AUTOTUNE not in one.runs:
            continue
        about = (one.shape.op, one.shape.dtype) if one.shape is not None else (ALL, ALL)
        for name, run in one.runs.items():
            if name != MAX_AUTOTUNE:
                for op, dtype in dict.fromkeys([about, (ALL, ALL)]):
                    pairs.setdefault((op, dtype, name), []).append((run, one.runs[MAX_AUTOTUNE]))
    return sorted((_score(*key, some) for key, some in pairs.items()), key=lambda score: (score.op == ALL, score.op))


def statistics_of(scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as one document: op -> type -> way -> numbers."""
    document: dict[str, Any] = {}
    for score in scores:
        document.setdefault(score.op, {}).setdefault(score.dtype, {})[score.way] = score.as_json()
    return document


def _score(op: str, dtype: str, way: str, pairs: Sequence[tuple[Run, Run]]) -> Score:
    runs = [ours.run_s / theirs.run_s for ours, theirs in pairs]
    compiles = [ours.compile_s / theirs.compile_s for ours, theirs in pairs]
    return Score(
        op,
        dtype,
        way,
        programs=len(pairs),
        compile_ratio=_mean(compiles),
        run_ratio=_mean(runs),
        worst_run_ratio=max(runs),
        wins=sum(ratio < 1 / (1 + _TIE) for ratio in runs),
        losses=sum(ratio > 1 + _TIE for ratio in runs),
    )


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))
