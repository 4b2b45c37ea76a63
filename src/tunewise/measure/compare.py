"""The final: the best candidate against the incumbent in interleaved pairs, with a sign test and a margin.

The smaller of two means would switch half the time between equals; a sign test on pairs hardly ever does, and whatever
disturbs the machine for longer than a pair disturbs both sides of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

MARGIN = 0.01
LEAST_S = 1e-8  # a call differs by this much from its equal by nothing but where its objects lie in memory
CLEAR = 0.1  # a gain that quick pairs can show
# After so many pairs, stop if the chance of such a run of wins between equals is below this; the sum stays below 1 %.
LOOKS = ((10, 0.001), (20, 0.0015), (40, 0.0065))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired samples of incumbent and challenger, and what they say."""

    is_win: bool
    gain: float  # median of incumbent / challenger over the pairs
    p_value: float
    incumbent_s: tuple[float, ...]
    challenger_s: tuple[float, ...]


def compare(pair: Callable[[int | None], tuple[float, float]], *, pairs: int | None = None) -> Comparison:
    """Say whether the challenger is faster than the incumbent beyond the noise and by more than the margin.

    `pair` times both by so many turns (None: enough to be steady) and returns the seconds of (incumbent, challenger).
    Ten quick pairs settle a clear case; otherwise there are looks at 10, 20 and 40 careful ones. `pairs` fixes their
    number instead; where there are fewer than seven, every one of them must be won.
    """
    if pairs is not None:
        return judged([pair(None) for _ in range(pairs)], max(0.01, sign_test(pairs, pairs)))
    quick = judged([pair(1) for _ in range(LOOKS[0][0])], LOOKS[0][1])
    if quick.is_win and quick.gain >= 1 + CLEAR:
        return quick
    taken: list[tuple[float, float]] = []
    for count, threshold in LOOKS:
        taken += [pair(None) for _ in range(count - len(taken))]
        verdict = judged(taken, threshold)
        if verdict.is_win or verdict.gain < 1 + MARGIN:  # what does not show by now is not worth more pairs
            break
    return verdict


def sign_test(wins: int, trials: int) -> float:
    """Return the chance of at least so many wins if both sides were equal."""
    ways = total = comb(trials, wins)
    for k in range(wins, trials):
        ways = ways * (trials - k) // (k + 1)
        total += ways
    return total / (1 << trials)


def judged(taken: Sequence[tuple[float, float]], threshold: float) -> Comparison:
    """Return what pairs of (incumbent, challenger) say; a win needs a p-value of at most the threshold."""
    ratios = [incumbent / challenger for incumbent, challenger in taken]
    wins = sum(ratio > 1 for ratio in ratios)
    p_value, gain = sign_test(wins, sum(ratio != 1 for ratio in ratios)), median(ratios)
    saved_s = median(incumbent - challenger for incumbent, challenger in taken)
    return Comparison(
        is_win=p_value <= threshold and gain >= 1 + MARGIN and saved_s >= LEAST_S,
        gain=gain,
        p_value=p_value,
        incumbent_s=tuple(incumbent for incumbent, _ in taken),
        challenger_s=tuple(challenger for _, challenger in taken),
    )
