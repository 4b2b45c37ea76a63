"""A tree of a model as people read it: questions, answers, support, and what is left out of a large one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from tunewise.models import Columns, Forest, Guess, Leaf, Model, Split, Tree
from tunewise.models.labels import key, tags
from tunewise.report.wording import amount, count

_WORDS = 4  # of a question, before it says how many more there are


@dataclass(frozen=True, slots=True)
class Ending:
    """A leaf in words: what it answers and how well, and the number of its choice (None: it answers with none)."""

    label: str
    remark: str
    support: int
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Stub:
    """A part of a large tree that is not shown."""

    leaves: int
    support: int


@dataclass(frozen=True, slots=True)
class Question:
    """A split in words, and the two parts it leads to: first where the answer is yes."""

    about: str
    test: str  # what is asked about it, such as `≤ 8`
    support: int
    yes: "Part"
    no: "Part"

    @property
    def text(self) -> str:
        """The whole question."""
        return f"{self.about} {self.test}"


Part = Question | Ending | Stub


@dataclass(frozen=True)
class Outline:
    """A tree in words; `hidden` counts the leaves that are not shown.

    `formulas` and `choices` are what the numbers in its questions and leaves stand for.
    """

    root: Part
    leaves: int
    hidden: int = 0
    formulas: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


def outline(model: Model, *, most: int = 48) -> Outline | None:
    """Return a model's tree with at most so many leaves, those with most support kept; None for a whole forest."""
    nodes = _nodes(model)
    if nodes is None:
        return None
    reading = _Reading(nodes, model.columns.brief, model.columns, tags(model.choices))
    root = reading.part(0, reading.opened(most))
    leaves, endings = reading.leaves[0], [part for part in parts(root) if isinstance(part, Ending)]
    asked = [node.column for node in nodes if isinstance(node, Split)]
    named = [part.choice for part in endings if part.choice is not None]
    return Outline(root, leaves, leaves - len(endings), model.columns.parts(asked), key(model.choices, named))


def way(model: Model, known: Sequence[float]) -> str | None:
    """Return the questions that a problem's inputs meet, answered, and what its leaf is known for; None: a forest."""
    if not isinstance(model.body, Tree):
        return None
    met, leaf = model.body.path(model.columns.row(known))
    reading = _Reading(model.body.nodes, model.columns.names, model.columns, tags(model.choices))
    said = [f"{' '.join(reading.question(split))}: {'yes' if is_low else 'no'}" for split, is_low in met]
    return "; ".join([*said, reading.ending(leaf).remark])


def parts(root: Part) -> Iterator[Part]:
    """Yield a part and all below it, a question before what it leads to."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Question):
            waiting += [part.no, part.yes]


def text(outline: Outline) -> str:
    """Return the tree as indented lines; a line end in a name is written out."""
    lines, waiting = [], [(outline.root, 0, "")]
    while waiting:
        part, depth, before = waiting.pop()
        lines.append("    " * depth + before + _line(part).replace("\n", "\\n"))
        if isinstance(part, Question):
            waiting += [(part.no, depth + 1, "no:  "), (part.yes, depth + 1, "yes: ")]
    return "\n".join(lines)


def _line(part: Part) -> str:
    if isinstance(part, Question):
        return f"{part.text}?"
    if isinstance(part, Stub):
        return f"... {part.leaves} more leaves ({part.support} problems)"
    return f"{part.label} ({part.remark})"


def _nodes(model: Model) -> Sequence[Split | Leaf | Guess] | None:
    if isinstance(model.body, Tree):
        return model.body.nodes
    is_one_tree = isinstance(model.body, Forest) and len(model.body.trees) == 1
    return model.body.trees[0] if isinstance(model.body, Forest) and is_one_tree else None


@dataclass
class _Reading:
    """The nodes of a tree, with what is below each of them."""

    nodes: Sequence[Split | Leaf | Guess]
    names: Sequence[str]
    columns: Columns
    tags: Sequence[str]
    support: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.support, self.leaves = [0] * len(self.nodes), [1] * len(self.nodes)
        for number in reversed(range(len(self.nodes))):  # children come after their parent
            node = self.nodes[number]
            if isinstance(node, Split):
                self.support[number] = self.support[node.low] + self.support[node.high]
                self.leaves[number] = self.leaves[node.low] + self.leaves[node.high]
            else:
                self.support[number] = node.support

    def opened(self, most: int) -> set[int]:
        """Return the splits that are shown, those with most support first; their ends are at most so many."""
        opened: set[int] = set()
        waiting = [0]
        while waiting and len(opened) + 1 < most:
            number = max(waiting, key=lambda n: (self.support[n], -n))
            waiting.remove(number)
            node = self.nodes[number]
            if isinstance(node, Split):
                opened.add(number)
                waiting += [node.low, node.high]
        return opened

    def part(self, number: int, opened: set[int]) -> Part:
        """Return a node in words; the depth of a model is bounded, so this may go down by itself."""
        node = self.nodes[number]
        if isinstance(node, Split):
            if number not in opened:
                return Stub(self.leaves[number], self.support[number])
            yes, no = self.part(node.low, opened), self.part(node.high, opened)
            return Question(*self.question(node), self.support[number], yes, no)
        if isinstance(node, Guess):
            return Ending(f"{exp(min(node.value, 50.0)):.3g} x", f"{node.support} rows", node.support)
        return self.ending(node)

    def question(self, split: Split) -> tuple[str, str]:
        """Return what a split is about, and what it asks of that."""
        name = self.names[split.column]
        if not split.words:
            return name, f"≤ {amount(split.threshold)}"
        column = self.columns.inputs[split.column]
        words = [getattr(column, "words", ())[word] for word in split.words]
        if len(words) == 1:
            return name, f"is {words[0]}"
        more = f" and {len(words) - _WORDS} more" if len(words) > _WORDS else ""
        return name, f"in {', '.join(words[:_WORDS])}{more}"

    def ending(self, leaf: Leaf) -> Ending:
        """Return a leaf in words."""
        problems = count(leaf.support, "problem") if leaf.support else "nothing measured"
        if not leaf.ranking:
            return Ending("abstains", f"{problems}, default {leaf.default_regret:.2f}", leaf.support)
        choice = leaf.ranking[0]
        remark = f"{problems}, regret {leaf.regret:.2f} (default {leaf.default_regret:.2f})"
        return Ending(self.tags[choice], remark, leaf.support, choice)
