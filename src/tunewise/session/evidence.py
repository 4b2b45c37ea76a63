"""Evidence: what a remembered verdict must show before it answers. Its gain is that of its samples."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from tunewise import settings
from tunewise.decision import Timing, Trial, Verdict
from tunewise.measure.compare import Comparison, judged, sign_test
from tunewise.settings import Trust

# Measured: a call of an empty Python function takes 29 ns on a CPU of 2020, and starting a GPU kernel some 1,000 ns.
LEAST_CALL_S = 5e-9
LONGEST_CALL_S = 1e6  # eleven days: nobody tunes what takes longer
MOST_CHANCE = 0.01  # of pairs that say so between equals
MOST_PAIRS = 1_000  # that are weighed, of more every second or third one: the rest could only cost time
PAIRS = 7  # the fewest that can show as little chance, each of them won


def is_possible(samples_s: Sequence[float]) -> bool:
    """Return whether samples are times that a call can take."""
    return all(LEAST_CALL_S <= sample <= LONGEST_CALL_S for sample in samples_s)


def is_possible_trial(trial: Trial) -> bool:
    """Return whether a trial failed, or took a time that a call can take."""
    return not isinstance(trial.outcome, Timing) or is_possible(trial.outcome.samples_s)


def compared(verdict: Verdict) -> Comparison | None:
    """Return what the pairs of a verdict say; None where it has none, or samples that no call can have."""
    incumbent_s, challenger_s = verdict.incumbent_s, verdict.challenger_s
    if not challenger_s or len(incumbent_s) != len(challenger_s) or not is_possible((*incumbent_s, *challenger_s)):
        return None
    pairs = list(zip(incumbent_s, challenger_s, strict=True))[:: ceil(len(challenger_s) / MOST_PAIRS)]
    return judged(pairs, max(MOST_CHANCE, sign_test(len(pairs), len(pairs))))


def gain_in(verdict: Verdict) -> float | None:
    """Return how many times faster than the incumbent the winner was in pairs; None where they do not tell."""
    found = compared(verdict)
    return None if found is None else found.gain


def answering(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Yield the verdicts that may answer, each with the gain of its samples; the best first: this home's, the latest.

    Whose those are is what the settings trust.
    """
    trust, latest_first = settings.current().trust, verdicts[::-1]
    for verdict in sorted(latest_first, key=lambda verdict: verdict.origin != "own"):
        if why_not(verdict, trust) is None:
            found = compared(verdict)
            yield verdict if found is None else replace(verdict, gain=found.gain, p_value=found.p_value)


def why_not(verdict: Verdict, trust: Trust) -> str | None:
    """Return why a verdict may not answer: its origin is not trusted, or its samples do not show it; None if it may."""
    return _why_not_trusted(verdict, trust) or _why_not_shown(verdict)


def _why_not_trusted(verdict: Verdict, trust: Trust) -> str | None:
    """Return why the origin of a verdict is not trusted. A failure elsewhere says nothing of a tuning run here."""
    if verdict.origin == "own":
        return None
    place = "on this host by another home" if verdict.origin == "host" else "on another host"
    if trust == "own" or (trust == "host" and verdict.origin != "host"):
        return f"measured {place}; not trusted with trust={trust!r}"
    return f"a tuning run failed {place}; it may succeed here" if verdict.ending == "failed" else None


def _why_not_shown(verdict: Verdict) -> str | None:
    if not is_possible((*verdict.incumbent_s, *verdict.challenger_s)):
        return f"its samples are not times that a call can take ({LEAST_CALL_S:g} to {LONGEST_CALL_S:g} s)"
    if verdict.ending == "tie":
        return None if verdict.origin == "own" or verdict.incumbent_s else "it has no samples of the default"
    return _why_no_win(verdict) if verdict.ending == "win" else None


def _why_no_win(verdict: Verdict) -> str | None:
    if dict(verdict.challenger) == dict(verdict.incumbent):
        return "the config that won is the one it won against"
    if not verdict.challenger_s:
        return None if verdict.origin == "own" else "it has no samples of the winner"
    found, count = compared(verdict), len(verdict.challenger_s)
    if found is None:
        return "its samples are no pairs of the default and the winner"
    enough = 1 if verdict.origin == "own" else PAIRS  # a program may fix fewer for itself
    if count < enough:
        return f"it has {count} pairs of samples; {enough} are needed"
    said = f"its {count} pairs show {found.gain:.2f}x (p={found.p_value:.2g})"
    return None if found.is_win else f"{said}, which is no win"
