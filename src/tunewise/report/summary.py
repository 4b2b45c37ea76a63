"""The first part of a report: what it is about, the numbers that matter most, the data, and what there is to gain."""

from collections.abc import Iterator, Mapping

from tunewise.learn.data_report import FeatureRange
from tunewise.models.labels import labels, spelled
from tunewise.report.findings import Findings
from tunewise.report.markup import Child, Markup, element, fragment, short
from tunewise.report.tables import bar, figures, in_all, table
from tunewise.report.wording import amount, count, factor, percent

_MOST_CONFIGS = 12  # in the table of those that are best; the rest is counted
_MOST_WORDS = 6
_MOST_DEVICES = 4
_CONFIG = 120  # characters


def subtitle(findings: Findings) -> str:
    """Return what the report is about in a line."""
    model, report = findings.model, findings.data
    made = f", and a model learned by {model.card.learner}" if model and model.card.learner else ""
    return f"{count(report.problems, 'problem')} measured with {count(report.configs, 'config')}{made}."


def key_figures(findings: Findings) -> Markup:
    """Return the numbers a reader looks for first, large."""
    return figures(_key_figures(findings))


def data(findings: Findings) -> Markup:
    """Return what was measured, of which features, and how well."""
    facts = table("What was measured", ("fact", "value"), list(_facts(findings)))
    rows = [_feature_row(feature) for feature in findings.data.features]
    features = table("Features of the problems", ("feature", "range", "distinct"), rows, numbers=("distinct",))
    return element("div", facts, features, class_="side")


def headroom(findings: Findings) -> Markup:
    """Return how far the default is from the best, and which configs are the best ones."""
    scores = findings.scores
    told = []
    if scores.default_regret is not None:
        default = scores.default_regret
        told.append(
            f"The default takes {factor(default.geomean)} times the best time measured (geometric mean over the "
            f"problems), {factor(default.p95)} times on one problem in twenty, {factor(default.max)} on the worst."
        )
    single = scores.best_single_regret
    told.append(
        f"One choice for all problems takes {factor(single.geomean)} times the best time at least; "
        f"that is {short(spelled(scores.best_single), _CONFIG)}."
    )
    return fragment(*(element("p", sentence) for sentence in told), _winners(findings))


def _key_figures(findings: Findings) -> Iterator[tuple[str, str, str]]:
    scores = findings.scores
    yield from _held_out(findings.held_out)
    if scores.default_regret is not None:
        default = scores.default_regret
        yield "headroom", factor(default.geomean), f"default / best; p95 {factor(default.p95)}"
    single = scores.best_single_regret
    yield "best single choice", factor(single.geomean), f"of the best; p95 {factor(single.p95)}"
    if findings.model is None:
        return
    where = findings.judged_on
    yield "learned", factor(scores.regret.geomean), f"of the best, {where}; p95 {factor(scores.regret.p95)}"
    if scores.speedup_over_default is not None:
        yield "speed-up", f"{factor(scores.speedup_over_default)}x", f"over the default, {where}"
    yield "coverage", percent(scores.coverage), f"of the problems are answered, {where}"


def _held_out(scores: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """Yield the figure that comes first where there is one: that on problems which the model did not learn from."""
    if scores:
        p95 = f"; p95 {factor(scores['p95'])}" if "p95" in scores else ""
        yield "learned, held out", factor(scores["regret"]), f"of the best, on problems not learned from{p95}"


def _facts(findings: Findings) -> Iterator[tuple[Child, Child]]:
    report = findings.data
    yield "problems", f"{report.problems:,}"
    yield "configs", f"{report.configs:,}"
    yield "measurements", f"{report.rows:,}"
    yield "samples", f"{report.samples:,}"
    yield "tried, of all problems x configs", percent(report.coverage)
    if report.noise_floor is not None:
        yield "noise floor", percent(report.noise_floor - 1)
    yield "default", short(spelled(report.default), _CONFIG) if report.default is not None else "not known"
    for kind, number in (*((f"failed: {kind}", n) for kind, n in report.failures.items()), *report.notes.items()):
        yield kind, f"{number:,}"
    for facts in report.devices[:_MOST_DEVICES]:
        if facts:
            yield "device", _listed(facts)
    yield "fingerprint", report.fingerprint[:16]


def _listed(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in facts.items() if value is not None)


def _feature_row(feature: FeatureRange) -> tuple[Child, ...]:
    if feature.low is None or feature.high is None:
        more = feature.distinct - min(_MOST_WORDS, len(feature.words))
        reach = ", ".join(feature.words[:_MOST_WORDS]) + (f" and {more} more" if more else "")
    else:
        reach = f"{amount(feature.low)} to {amount(feature.high)}"
    return feature.name, short(reach, _CONFIG), f"{feature.distinct:,}"


def _winners(findings: Findings) -> Markup:
    """Return which configs are best how often."""
    report = findings.data
    shown = report.winners[:_MOST_CONFIGS]
    total = max(1, sum(winner.problems for winner in report.winners))
    configs = [winner.config for winner in shown]
    rows = [
        (short(label, _CONFIG), f"{w.problems:,}", percent(w.problems / total), bar(w.problems / total, 2))
        for label, w in zip(labels(configs), shown, strict=True)
    ]
    left = report.winners[len(shown) :]
    rest = count(sum(winner.problems for winner in left), "other problem")
    more = f"Fastest on {rest}: {count(len(left), 'more config')}."
    columns = ("config", "problems", "share", "")
    return fragment(
        table("The fastest config, by problems", columns, rows, numbers=columns[1:3]),
        in_all(configs),
        element("p", more, class_="soft") if left else None,
    )
