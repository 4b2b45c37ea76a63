"""A model as a drawing in the DOT language: boxes that ask, and ovals that answer."""

from collections.abc import Iterator, Sequence

from tunewise.codegen.functions import support
from tunewise.codegen.lexing import check_dot
from tunewise.codegen.literals import dot_string
from tunewise.decision import canonical
from tunewise.models import Forest, Guess, Leaf, Model, Split, Word

_SHOWN = 3  # choices of a leaf


def dot_source(model: Model) -> str:
    """Return the model as DOT text, a forest as one cluster a tree; raises InvalidModel for an unsound model."""
    model.check()
    text = "\n".join(_lines(model)) + "\n"
    check_dot(text)
    return text


def _question(model: Model, split: Split, name: str) -> str:
    if not split.words:
        return f"{name} <= {split.threshold:.6g}"
    column = model.columns.inputs[split.column]
    assert isinstance(column, Word)
    return f"{name} is {' or '.join(column.words[word] for word in split.words)}"


def _lines(model: Model) -> Iterator[str]:
    yield f"digraph {dot_string(model.card.decision)} {{"
    yield "    node [shape=box, style=rounded];"
    body = model.in_trees()
    if isinstance(body, Forest):
        for number, nodes in enumerate(body.trees):
            yield f"    subgraph cluster_{number} {{"
            yield from (f"    {line}" for line in _nodes(model, nodes, f"t{number}_"))
            yield "    }"
    else:
        yield from _nodes(model, body.nodes, "n")
    yield "}"


def _nodes(model: Model, nodes: Sequence[Split | Leaf | Guess], prefix: str) -> Iterator[str]:
    names = model.columns.names
    for number, node in enumerate(nodes):
        if isinstance(node, Split):
            label = dot_string(_question(model, node, names[node.column]))
            yield f"    {prefix}{number} [label={label}];"
            yield f'    {prefix}{number} -> {prefix}{node.low} [label="yes"];'
            yield f'    {prefix}{number} -> {prefix}{node.high} [label="no"];'
        else:
            label = _answer(model, node) if isinstance(node, Leaf) else f"{node.value:.4g}"
            yield f"    {prefix}{number} [label={dot_string(label)}, shape=ellipse];"


def _answer(model: Model, leaf: Leaf) -> str:
    choices = [model.choices[number] for number in leaf.ranking[:_SHOWN]]
    shown = [str(choice["choice"]) if set(choice) == {"choice"} else canonical.encode(choice) for choice in choices]
    return "\n".join(filter(None, [*shown, "" if shown else "the default", support(leaf)]))
