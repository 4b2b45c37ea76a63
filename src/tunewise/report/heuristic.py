"""The heuristic itself: its tree drawn and in words, what it chooses from, where it holds, and what matters to it."""

from collections.abc import Iterator, Sequence

from tunewise.models import Leaf, Model, Tree
from tunewise.report import drawing
from tunewise.report.findings import Findings
from tunewise.report.markup import Child, Markup, element, fragment, short
from tunewise.report.outline import Outline, outline, text
from tunewise.report.tables import bar, in_all, table
from tunewise.report.wording import count, factor, labels, percent

_MOST_CHOICES = 16  # in a table; the rest is counted
_MOST_COLUMNS = 20
_CONFIG = 120  # characters of a config
_METHODS = {
    "splits": "The share of all regret that the tree saves, by the column its questions are about.",
    "shuffling": "How much regret rises where a feature is taken from another problem, as a share of all rises.",
}


def tree(findings: Findings) -> Markup | None:
    """Return the tree and the choices of the model; None where there is no model."""
    model = findings.model
    if model is None:
        return None
    words = outline(model)
    return fragment(
        _about(model),
        _drawn(words, model) if words is not None else _too_many(model),
        _parts(model) if words is not None else None,
        _choices(model),
    )


def importance(findings: Findings) -> Markup | None:
    """Return the columns by what they save; None where nothing is saved."""
    found = findings.importance
    if found is None or not found.shares:
        return None
    rows = [(short(one.name, _CONFIG), percent(one.share), bar(one.share)) for one in found.shares[:_MOST_COLUMNS]]
    left = len(found.shares) - len(rows)
    return fragment(
        element("p", _METHODS[found.method]),
        table("Share of the regret saved", ("column", "share", ""), rows, numbers=("share",)),
        element("p", f"Less than these: {count(left, 'more column')}.", class_="soft") if left else None,
    )


def _about(model: Model) -> Markup:
    """Return where the model may be used, and what it did on problems that were held out."""
    card = model.card
    fence = ", ".join(f"{name} = {value}" for name, value in card.fence.items())
    rows = [
        ("learned by", card.learner or "-"),
        ("on", card.created or "-"),
        ("for", fence or "any hardware"),
        ("data", card.fingerprint[:16] or "-"),
        *((f"held out: {name.replace('_', ' ')}", factor(value)) for name, value in card.scores.items()),
    ]
    return table("The model", ("fact", "value"), rows)


def _parts(model: Model) -> Markup | None:
    """Return the long formulas that questions are made of; None where there are none."""
    rows = list(model.columns.parts.items())
    return table("What its questions are made of", ("part", "formula"), rows) if rows else None


def _drawn(words: Outline, model: Model) -> Markup:
    title = f"The tree of {model.card.decision}"
    cut = f" {words.hidden} of {words.leaves} leaves, those with least support, are not shown." if words.hidden else ""
    note = f"Yes leads right, no leads down; a line is as thick as the number of problems that take it.{cut}"
    box = element(
        "div", drawing.figure(words, title=title), class_="scroll tree", role="region", aria_label=title, tabindex="0"
    )
    return fragment(
        element("figure", box, element("figcaption", note, class_="soft")),
        element("details", element("summary", "The same tree as text"), element("pre", text(words), tabindex="0")),
    )


def _too_many(model: Model) -> Markup:
    trees = getattr(model.body, "trees", ())
    what = f"a forest of {count(len(trees), 'tree')}" if trees else "no tree"
    return element("p", f"The model is {what}: it guesses the time of every choice, and cannot be drawn as one tree.")


def _choices(model: Model) -> Markup:
    """Return what the model chooses from, by the problems it was learned from."""
    support, named = _support(model), labels(model.choices)
    ranked = sorted(support or range(len(model.choices)), key=lambda number: (-support.get(number, 0), number))
    total = sum(support.values())
    rows = [_choice_row(model, named, number, support.get(number, 0), total) for number in ranked[:_MOST_CHOICES]]
    columns = ("choice", "chosen for", "") if total else ("choice",)
    left = len(model.choices) - len(rows)
    return fragment(
        table("What it chooses from", columns, rows, numbers=("chosen for",)),
        element("p", f"Further back in its rankings: {count(left, 'more choice')}.", class_="soft") if left else None,
        in_all(model.choices),
    )


def _choice_row(model: Model, named: Sequence[str], number: int, support: int, total: int) -> tuple[Child, ...]:
    name = short(named[number], _CONFIG) + (" (default)" if number == model.default else "")
    return (name, count(support, "problem"), bar(support / total, number)) if total else (name,)


def _support(model: Model) -> dict[int, int]:
    """Return how many problems each choice was learned for; empty where the body does not say."""
    found: dict[int, int] = {}
    for leaf in _leaves(model):
        if leaf.ranking:
            found[leaf.ranking[0]] = found.get(leaf.ranking[0], 0) + leaf.support
    return found


def _leaves(model: Model) -> Iterator[Leaf]:
    if isinstance(model.body, Tree):
        yield from (node for node in model.body.nodes if isinstance(node, Leaf))
