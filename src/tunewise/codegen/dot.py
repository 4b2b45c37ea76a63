"""A model as a drawing in the DOT language: boxes that ask, and ovals that answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from tunewise.codegen.functions import support
from tunewise.codegen.lexing import check_dot
from tunewise.codegen.literals import dot_string
from tunewise.models import Forest, Guess, Leaf, Model, Split, Word
from tunewise.models.labels import key, tags

_SHOWN = 3  # choices of a leaf
_WIDE = 100  # characters of what numbers stand for


def dot_source(model: Model) -> str:
    """Return the model as DOT text, a forest as one cluster a tree; raises InvalidModel for an unsound model."""
    model.check()
    text = "\n".join(_lines(model)) + "\n"
    check_dot(text)
    return text


@dataclass(frozen=True, slots=True)
class _Writing:
    """A model, and what its columns and choices are called in drawings."""

    model: Model
    columns: Sequence[str]
    choices: Sequence[str]

    def nodes(self, nodes: Sequence[Split | Leaf | Guess], prefix: str) -> Iterator[str]:
        """Yield the nodes and edges of a tree."""
        for number, node in enumerate(nodes):
            if isinstance(node, Split):
                yield f"    {prefix}{number} [label={dot_string(self._question(node))}];"
                yield f'    {prefix}{number} -> {prefix}{node.low} [label="yes"];'
                yield f'    {prefix}{number} -> {prefix}{node.high} [label="no"];'
            else:
                label = self._answer(node) if isinstance(node, Leaf) else f"{node.value:.4g}"
                yield f"    {prefix}{number} [label={dot_string(label)}, shape=ellipse];"

    def _question(self, split: Split) -> str:
        name = self.columns[split.column]
        if not split.words:
            return f"{name} <= {split.threshold:.6g}"
        column = self.model.columns.inputs[split.column]
        assert isinstance(column, Word)
        return f"{name} is {' or '.join(column.words[word] for word in split.words)}"

    def _answer(self, leaf: Leaf) -> str:
        shown = [self.choices[number] for number in leaf.ranking[:_SHOWN]]
        return "\n".join(filter(None, [*shown, "" if shown else "the default", support(leaf)]))


def _lines(model: Model) -> Iterator[str]:
    yield f"digraph {dot_string(model.card.decision)} {{"
    yield "    node [shape=box, style=rounded];"
    body, write = model.in_trees(), _Writing(model, model.columns.brief, tags(model.choices))
    if isinstance(body, Forest):
        for number, nodes in enumerate(body.trees):
            yield f"    subgraph cluster_{number} {{"
            yield from (f"    {line}" for line in write.nodes(nodes, f"t{number}_"))
            yield "    }"
        yield from _key(model, [node for nodes in body.trees for node in nodes])
    else:
        yield from write.nodes(body.nodes, "n")
        yield from _key(model, body.nodes)
    yield "}"


def _key(model: Model, nodes: Sequence[Split | Leaf | Guess]) -> Iterator[str]:
    """Yield a note that says what the numbers of formulas and choices stand for, where there are any."""
    asked = [node.column for node in nodes if isinstance(node, Split)]
    shown = [number for node in nodes if isinstance(node, Leaf) for number in node.ranking[:_SHOWN]]
    meanings = {**model.columns.parts(asked), **key(model.choices, shown)}
    lines = [line for name, meaning in meanings.items() for line in wrap(f"{name} = {meaning}", _WIDE)]
    if lines:
        yield f"    key [label={dot_string(chr(10).join(lines), is_left=True)}, shape=note];"
