"""The heuristic itself: its tree drawn and in words, what it chooses from, where it holds, and what matters to it."""

from collections.abc import Iterator, Mapping, Sequence

from tunewise.models import Leaf, Model, Tree
from tunewise.models.labels import are_numbered, labels
from tunewise.report import drawing
from tunewise.report.findings import Findings
from tunewise.report.markup import Child, Markup, element, fragment, short
from tunewise.report.outline import Outline, outline, text
from tunewise.report.tables import bar, in_all, table
from tunewise.report.wording import count, factor, percent

_MOST_CHOICES, _MOST_LISTED = 16, 500  # in a table, and with those that are folded away; the rest is counted
_MOST_COLUMNS = 20
_BESIDE = ("default_regret", "best_single_regret")  # of a card's scores, those of ways that learn nothing
_CONFIG = 120  # characters of a config
_RANKS_ALL = "For every problem it ranks all of its choices, so any of them may come first."
_FITTED = 1400  # pixels of a tree that is made to fit a wide page; smaller, a wider one could not be read
_SIDEWAYS = {
    True: "Where the tree is wider than the screen, scroll sideways.",
    False: "The tree is wider than the page: scroll sideways to see all of it.",
}
_METHODS = {  # what is told, and the caption
    "splits": (
        "The share of all regret that the tree saves, by the column its questions are about.",
        "Share of the regret saved",
    ),
    "shuffling": (
        "How much regret rises where a feature is taken from another problem, as a share of all rises.",
        "Share of the rise in regret",
    ),
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
        _formulas(words) if words is not None else None,
        _choices(model),
    )


def importance(findings: Findings) -> Markup | None:
    """Return the columns by what they save; None where nothing is saved."""
    found = findings.importance
    if found is None or not found.shares:
        return None
    rows = [(short(one.name, _CONFIG), percent(one.share), bar(one.share)) for one in found.shares[:_MOST_COLUMNS]]
    left = len(found.shares) - len(rows)
    told, caption = _METHODS[found.method]
    return fragment(
        element("p", told),
        table(caption, ("column", "share", ""), rows, numbers=("share",)),
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
        *((_score(name), factor(value)) for name, value in card.scores.items()),
    ]
    return table("The model", ("fact", "value"), rows)


def _score(name: str) -> str:
    """Return what a score of the card is called: those of the default and of one choice have nothing to hold out."""
    told = name.replace("_", " ")
    return f"on the data learned from: {told}" if name in _BESIDE else f"held out: {told}"


def _formulas(words: Outline) -> Markup | None:
    """Return the long formulas that questions are made of; None where there are none."""
    rows = list(words.formulas.items())
    return table("What its questions are made of", ("number", "formula"), rows) if rows else None


def _drawn(words: Outline, model: Model) -> Markup:
    title = f"The tree of {model.card.decision}"
    cut = f" {words.hidden} of {words.leaves} leaves, those with least support, are not shown." if words.hidden else ""
    note = f"Yes leads right, no leads down; a line is as thick as the number of problems that take it.{cut}"
    is_fitted = drawing.width(words) <= _FITTED
    look = "scroll tree fitted" if is_fitted else "scroll tree"
    box = element("div", drawing.figure(words, title=title), class_=look, role="region", aria_label=title, tabindex="0")
    hint = element("p", _SIDEWAYS[is_fitted], class_="soft sideways narrow" if is_fitted else "soft sideways")
    return fragment(
        element("figure", hint, box, element("figcaption", note, class_="soft")),
        element("details", element("summary", "The same tree as text"), element("pre", text(words), tabindex="0")),
    )


def _too_many(model: Model) -> Markup:
    trees = getattr(model.body, "trees", ())
    what = f"a forest of {count(len(trees), 'tree')}" if trees else "no tree"
    return element("p", f"The model is {what}: it guesses the time of every choice, and cannot be drawn as one tree.")


def _choices(model: Model) -> Markup:
    """Return what the model chooses from: by the problems it was learned from, where it tells that of each."""
    support = _support(model)
    ranked = sorted(range(len(model.choices)), key=lambda number: (number not in support, -support.get(number, 0)))
    columns = ("choice", "chosen for", "") if sum(support.values()) else ("choice",)
    rows = list(_choice_rows(model, ranked[:_MOST_LISTED], support))
    shown, folded = rows[:_MOST_CHOICES], rows[_MOST_CHOICES:]
    left = len(ranked) - len(rows)
    more = count(len(folded), "more choice") + (f", and {left:,} that are not listed" if left else "")
    rest = table(more, columns, folded, numbers=("chosen for",))
    return fragment(
        None if isinstance(model.body, Tree) else element("p", _RANKS_ALL),
        table("What it chooses from", columns, shown, numbers=("chosen for",)),
        element("details", element("summary", more), rest) if folded else None,
        in_all(model.choices),
    )


def _choice_rows(model: Model, numbers: Sequence[int], support: Mapping[int, int]) -> Iterator[tuple[Child, ...]]:
    named, total = labels(model.choices), sum(support.values())
    is_numbered = are_numbered(model.choices)
    for number in numbers:
        name = f"#{number} {named[number]}" if is_numbered else named[number]
        name = short(name, _CONFIG) + (" (default)" if number == model.default else "")
        own = support.get(number, 0)
        yield (name, count(own, "problem"), bar(own / total, number)) if total else (name,)


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
