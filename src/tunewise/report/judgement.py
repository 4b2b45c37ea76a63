"""How well the heuristic chooses: regret against default, best single choice and oracle, and the worst problems."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan

from tunewise.decision import Config, Feature, canonical
from tunewise.learn.validate import Spread
from tunewise.models.labels import spelled, tags
from tunewise.report import distribution
from tunewise.report.distribution import Regrets
from tunewise.report.findings import Findings
from tunewise.report.markup import Markup, element, fragment, short
from tunewise.report.tables import legend, table
from tunewise.report.wording import amount, count, factor, percent

_NEAR = 1.05
_MOST_FEATURES = 8  # of the worst problems, a column each
_MOST_WORDS = 12  # in the table of categories
_CELL = 48  # characters of a cell
_CONFIG = 120  # of one with a config that the model has not
_REGRET = "Regret is the time of what was chosen over the best time measured for the same problem: 1 is perfect."
_NO_MODEL = "No model was given: tunewise train makes one, and --model shows it here."
_WORST = "Where the heuristic loses most: measure more problems like these, or give it a feature that tells them apart."
_COUNTED = {
    "correct": "it named the very fastest",
    "wrong": "it named another, however close",
    "unsure": "it abstained",
    "unmeasured": "what it named was not tried there",
}
_SEEN = "The model was learned from these very problems: its figures on them flatter it. "
_HELD_OUT = {
    True: "The row held out is what it did on problems that it had not learned from.",
    False: "It was not judged on problems that were held out.",
}


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of choosing: what it is called, and how it did."""

    name: str
    spread: Spread
    regrets: Regrets


def regret(findings: Findings) -> Markup:
    """Return how the ways of choosing compare: their curves, and a table."""
    ways = list(_ways(findings))
    chart = distribution.figure(
        [way.regrets for way in ways],
        title=f"Regret on {count(findings.scores.problems, 'problem')}",
        noise_floor=findings.scores.noise_floor,
    )
    told = "The further up and left a curve, the more problems are answered near the best."
    floor = findings.scores.noise_floor or 1.0
    noise = f" Differences within {percent(floor - 1)}, the grey band, are noise." if floor > 1 else ""
    picture = element(
        "figure",
        element("div", chart, class_="chart"),
        legend((way.regrets.number, way.name) for way in ways),
        element("figcaption", told + noise, class_="soft"),
    )
    sides = element("div", picture, element("div", _compared(ways, findings), _answered(findings)), class_="side")
    return fragment(element("p", _REGRET), _warning(findings), sides, _by_category(findings))


def worst(findings: Findings) -> Markup | None:
    """Return the problems on which the model loses most, with their features."""
    rows = [row for row in findings.scores.worst if row.regret > 1]
    if findings.model is None or not rows:
        return None
    names = list(rows[0].problem) if len(rows[0].problem) <= _MOST_FEATURES else []
    called = _called(findings.model.choices)
    cells = [(factor(row.regret), called(row.chosen), called(row.best), *_features(row.problem, names)) for row in rows]
    numeric = [name for name in names if not isinstance(rows[0].problem[name], str)]
    columns = ("regret", "chosen", "best", *(names or ["problem"]))
    return fragment(element("p", _WORST), table("Worst problems", columns, cells, numbers=("regret", *numeric)))


def _called(choices: Sequence[Config]) -> Callable[[Config | None], str]:
    """Return what gives configs their names: the tag of a choice, and all parameters of what is none."""
    known = {canonical.encode(dict(choice)): tag for choice, tag in zip(choices, tags(choices), strict=True)}

    def called(config: Config | None) -> str:
        if config is None:
            return "(none)"
        return known.get(canonical.encode(dict(config))) or short(spelled(config), _CONFIG)

    return called


def _ways(findings: Findings) -> Iterator[_Way]:
    scores = findings.scores
    spreads = {"ours": scores.regret, "default": scores.default_regret, "best_single": scores.best_single_regret}
    named = (("learned", "ours"), ("default", "default"), ("best single", "best_single"))
    for number, (name, key) in enumerate(named):  # a way keeps its colour where another is missing
        spread = spreads[key]
        if spread is not None and (key != "ours" or findings.model is not None):
            yield _Way(name, spread, Regrets.of(name, scores.regrets[key].tolist(), number))
    yield _Way("oracle", Spread(1.0, 1.0, 1.0), Regrets.of("oracle", [1.0] * scores.problems, len(named)))


def _compared(ways: Sequence[_Way], findings: Findings) -> Markup:
    columns = ("way", "mean", "p95", "max", f"within {percent(_NEAR - 1)}")
    rows = [(way.name, *_figures(way.spread), percent(way.regrets.within(_NEAR))) for way in ways]
    held = findings.held_out
    if held:
        rows.insert(0, ("learned, held out", factor(held["regret"]), factor(held.get("p95", nan)), "-", "-"))
    strong = None if findings.model is None else 0
    where = f" {findings.judged_on}" if findings.model is not None else ""
    besides = ", but for what was held out" if held else ""
    caption = f"Regret{where}{besides}: geometric mean, 95th percentile, maximum; share of problems near the best"
    return table(caption, columns, rows, numbers=columns[1:], strong=strong)


def _answered(findings: Findings) -> Markup:
    """Return how often the model answers, and what its further guesses are worth."""
    scores = findings.scores
    if findings.model is None:
        return element("p", _NO_MODEL, class_="soft")
    counts = ", ".join(f"{number:,} {name} ({_COUNTED[name]})" for name, number in scores.counts.items() if number)
    rest = "; for the others the default stands" if scores.coverage < 1 else ""
    told = [f"It answers {percent(scores.coverage)} of the problems{rest}.", f"As AutoHeuristic counts: {counts}."]
    gain = f"{factor(scores.speedup_over_best_single)} times as fast as the best single choice"
    if scores.speedup_over_default is not None:
        gain = f"{factor(scores.speedup_over_default)} times as fast as the default and {gain}"
    told.append(f"It is {gain} (geometric mean).")
    several = [("first choice" if k == 1 else f"first {k}", factor(value)) for k, value in sorted(scores.top.items())]
    top = table("Regret of the best of its first choices", ("choices", "regret"), several, numbers=("regret",))
    return fragment(*(element("p", sentence) for sentence in told), top)


def _by_category(findings: Findings) -> Markup | None:
    """Return the regret of the model for every word of every categorical feature, the worst first."""
    found = [
        (name, word, spread) for name, words in findings.scores.by_category.items() for word, spread in words.items()
    ]
    if findings.model is None or len(found) < 2:
        return None
    found.sort(key=lambda one: -one[2].geomean)
    rows = [(name, short(word, _CELL), *_figures(spread)) for name, word, spread in found[:_MOST_WORDS]]
    columns = ("feature", "word", "mean", "p95", "max")
    left = len(found) - len(rows)
    caption = "Regret of the heuristic by category, the worst first" + (f"; {left} more are better" if left else "")
    return table(caption, columns, rows, numbers=columns[2:])


def _figures(spread: Spread) -> tuple[str, str, str]:
    return factor(spread.geomean), factor(spread.p95), factor(spread.max)


def _warning(findings: Findings) -> Markup | None:
    return element("p", _SEEN + _HELD_OUT[bool(findings.held_out)], class_="note") if findings.scores.is_seen else None


def _features(problem: Mapping[str, Feature], names: Sequence[str]) -> Iterator[str]:
    if not names:
        yield ", ".join(f"{name}={value}" for name, value in problem.items())
    for name in names:
        value = problem.get(name, "-")
        yield short(value, _CELL) if isinstance(value, str) else amount(value)
