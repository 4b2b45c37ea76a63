"""Facts as `--json` prints them: plain values under names that stay."""

from typing import Any

from tunewise.decision import Answer, Miss, Subject, Timing, Verdict, lower_half_mean
from tunewise.session import Explanation
from tunewise.session.recall import Measured, Winner

Row = dict[str, Any]


def of_verdict(verdict: Verdict) -> Row:
    """Return how a tuning run ended; times are seconds per call in the final pairs, null where nothing was timed."""
    default_s = lower_half_mean(verdict.incumbent_s) if verdict.incumbent_s else None
    return {
        "ending": verdict.ending,
        "config": dict(verdict.winner),
        "default": dict(verdict.incumbent),
        "time_s": verdict.time_s,
        "default_s": default_s,
        "gain": verdict.gain if verdict.ending == "win" else 1.0,
        "p_value": verdict.p_value,
        "pairs": _pairs(verdict),
        "evaluations": verdict.evaluations,
        "source": verdict.source,
        "detail": verdict.detail,
        "run": verdict.run,
        "at": verdict.at,
    }


def of_winner(winner: Winner) -> Row:
    """Return a remembered winner with its problem and the parts of the environment that must match."""
    return {**_about(winner.subject), **of_verdict(winner.verdict)}


def of_measured(measured: Measured) -> Row:
    """Return a trial: `samples_s` if it was timed, `failure` and `detail` if not."""
    trial, outcome = measured.trial, measured.trial.outcome
    timing = outcome if isinstance(outcome, Timing) else None
    failure = None if isinstance(outcome, Timing) else outcome
    return {
        **_about(measured.subject),
        "config": dict(trial.config),
        "time_s": timing.time_s if timing else None,
        "samples_s": list(timing.samples_s) if timing else [],
        "compile_s": timing.compile_s if timing else None,
        "failure": failure.kind if failure else None,
        "detail": failure.detail if failure else "",
        "source": trial.source,
        "run": trial.run,
        "at": trial.at,
    }


def of_answer(answer: Answer) -> Row:
    """Return an answer with its rung, source and reason."""
    return {
        "config": dict(answer.config),
        "rung": answer.rung,
        "source": answer.source,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "time_s": answer.time_s,
    }


def of_explanation(explanation: Explanation) -> Row:
    """Return an answer and what every rung said."""
    return {
        "decision": explanation.decision,
        "problem": dict(explanation.problem),
        "mode": explanation.mode,
        "answer": of_answer(explanation.answer),
        "steps": [{"rung": step.rung, "said": step.said} for step in explanation.steps],
    }


def of_miss(miss: Miss) -> Row:
    """Return a problem that was asked in vain, and how often."""
    return {"decision": miss.decision, "problem": dict(miss.problem), "count": miss.count}


def _pairs(verdict: Verdict) -> int:
    """Return how many pairs were run: none where the default was the fastest, whose samples stand on both sides."""
    is_met = verdict.challenger != verdict.incumbent
    return min(len(verdict.incumbent_s), len(verdict.challenger_s)) if is_met else 0


def _about(subject: Subject) -> Row:
    return {
        "decision": subject.decision,
        "problem": dict(subject.problem),
        "policy": dict(subject.policy),
        "environment": subject.environment.must,
    }
