"""The functions of a model in Python: how it reads a problem, and the plain ifs that rank the choices."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from keyword import kwlist, softkwlist

from tunewise.codegen.formulas import Formulas, in_python
from tunewise.codegen.literals import folded, folded_sum, python, python_float, python_tuple
from tunewise.codegen.naming import identifiers
from tunewise.codegen.placing import places
from tunewise.models import Columns, E, Forest, Guess, Input, Leaf, Model, Split, Tree, Word
from tunewise.models.pieces import CONSTANTS
from tunewise.models.templates import SORTED

_OURS = ("features", "context", "guesses", "number", "time", "total", "sorted", "str", "Exception", *CONSTANTS)
RESERVED = frozenset([*kwlist, *softkwlist, *_OURS])

_GUESSED = {True: "the logarithm of the time", False: "the time"}
Read = Callable[[Input], str]


def names_of(columns: Columns) -> tuple[str, ...]:
    """Return an identifier for every input of a model, in Python."""
    return identifiers([column.name for column in columns.inputs], RESERVED)


def has_words(model: Model) -> bool:
    """Return whether the choices are words, given by the one parameter `choice`."""
    return all(set(choice) == {"choice"} and isinstance(choice["choice"], str) for choice in model.choices)


def functions(model: Model, signature: str, read: Read, *, words: bool) -> list[str]:
    """Return the lines of all functions that rank a problem, the one with the signature first.

    `read` writes how an input is read; `words` says whether the words of choices come back or their numbers.
    """
    formulas = Formulas(model.columns, names_of(model.columns), in_python, in_python)
    lines = [signature, *_indented(_reading(model.columns, formulas.inputs, read))]
    body = model.in_trees()
    if isinstance(body, Tree):
        return [*lines, *_indented(_tree(model, body, formulas, words=words))]
    rates = () if body.work is None else tuple(f"r{place}" for place in range(len(body.work.amounts) + 1))
    return [*lines, *_indented(_loop(model, formulas, rates, words=words)), *_forest(body, formulas, rates)]


def candidates(model: Model) -> list[str]:
    """Return the lines of the table of a forest's candidates: the number of a choice, its columns, and its rates."""
    body, rows = model.in_trees(), []
    work = body.work if isinstance(body, Forest) else None
    for number, choice in enumerate(model.choices):
        values = model.columns.setting(choice)
        written = [_value(column, value) for column, value in zip(model.columns.config, values, strict=True)]
        rates = () if work is None else map(python_float, work.rates[number])
        rows.append(f"    {python_tuple([str(number), *written, *rates])},")
    return ["CANDIDATES = (", *rows, ")"]


def _value(column: Input, value: float) -> str:
    return python(column.words[int(value)]) if isinstance(column, Word) else python_float(value)


def _reading(columns: Columns, names: Sequence[str], read: Read) -> Iterator[str]:
    for name, column in zip(names, columns.problem, strict=False):
        yield f"{name} = {read(column)}"
    for name, column in zip(names, columns.problem, strict=False):
        yield from _outside(name, column)


def _outside(name: str, column: Input) -> list[str]:
    if isinstance(column, Word):
        lines = folded(f"if {name} not in ", [python(word) for word in column.words])
        lines[-1] += ":"
    else:
        lines = [f"if not {python_float(column.low)} <= {name} <= {python_float(column.high)}:"]
    return [*lines, "    return ()"]


def _tree(model: Model, tree: Tree, formulas: Formulas, *, words: bool) -> Iterator[str]:
    used = [node.column for node in tree.nodes if isinstance(node, Split)]
    formulas = formulas.asked(used)
    ahead = formulas.ahead(used)
    placed = places(tree, formulas, ahead)

    def before(number: int) -> Iterator[str]:
        for name, formula in formulas.assignments(placed.get(number, ())):
            yield from folded_sum(f"{name} = ", formula)

    def leaf(node: Leaf | Guess) -> list[str]:
        assert isinstance(node, Leaf)
        ranked = [python(model.choices[number]["choice"]) if words else str(number) for number in node.ranking]
        return folded("return ", ranked, support(node))

    yield from _ifs(tree.nodes, 0, lambda split: _test(split, formulas, ahead), leaf, before)


def _ifs(
    nodes: Sequence[Split | Leaf | Guess],
    number: int,
    test: Callable[[Split], str],
    leaf: Callable[[Leaf | Guess], list[str]],
    before: Callable[[int], Iterable[str]] = lambda _: (),
) -> list[str]:
    """Return nested ifs; every branch returns, so that the other one needs no else and no deeper indent."""
    lines: list[str] = []
    while isinstance(node := nodes[number], Split):
        lines += [*before(number), f"if {test(node)}:", *_indented(_ifs(nodes, node.low, test, leaf, before))]
        number = node.high
    return [*lines, *leaf(node)]


def _test(split: Split, formulas: Formulas, ahead: frozenset[int]) -> str:
    text = formulas.written(split.column, ahead)
    if not split.words:
        return f"{text} <= {python_float(split.threshold)}"
    column = formulas.columns.inputs[split.column]
    assert isinstance(column, Word)
    words = [python(column.words[number]) for number in split.words]
    return f"{text} == {words[0]}" if len(words) == 1 else f"{text} in {python_tuple(words)}"


def support(leaf: Leaf) -> str:
    """Return what is known of a leaf as a remark; empty where nothing is."""
    if not leaf.support and leaf.regret == leaf.default_regret:
        return ""
    problems = {0: "nothing measured", 1: "1 problem"}.get(leaf.support, f"{leaf.support} problems")
    if not leaf.ranking:
        return f"{problems}: nothing is surely better than the default"
    regret = "regret" if leaf.support else "expected regret"
    return f"{problems}: {regret} {leaf.regret:.3g}, the default's {leaf.default_regret:.3g}"


def _loop(model: Model, formulas: Formulas, rates: Sequence[str], *, words: bool) -> list[str]:
    settings = [*formulas.inputs[len(model.columns.problem) :], *rates]
    row = f"number, {', '.join(settings)}" if settings else "(number,)"
    return [
        "guesses = [",
        f"    (_guess({', '.join([*formulas.inputs, *rates])}), number)",
        f"    for {row} in CANDIDATES",
        "]",
        f"return {SORTED['words' if words else 'configs']}",
    ]


def _forest(forest: Forest, formulas: Formulas, rates: Sequence[str]) -> Iterator[str]:
    """Yield `_guess`, which adds the trees up for one candidate, and a function a tree over the columns it asks for."""
    asked = [sorted({node.column for node in nodes if isinstance(node, Split)}) for nodes in forest.trees]
    amounts = () if forest.work is None else forest.work.amounts
    derived = {column for columns in (*asked, amounts) for column in columns if column >= len(formulas.inputs)}
    ahead = formulas.ahead(derived) | derived
    given = [", ".join(formulas.written(column, ahead) for column in columns) for columns in asked]
    yield from ("", "", f"def _guess({', '.join([*formulas.inputs, *rates])}):")
    yield f'    """Return {_GUESSED[forest.work is None]} a candidate is expected to take, up to a constant."""'
    yield from (f"    {name} = {formula}" for name, formula in formulas.assignments(ahead))
    yield f"    total = {python_float(forest.base)}"
    yield from (f"    total += _tree_{number}({columns})" for number, columns in enumerate(given))
    if forest.work is None:
        yield "    return total"
    else:
        terms = [f"{formulas.written(column, ahead)} * {rate}" for column, rate in zip(amounts, rates[1:], strict=True)]
        yield from _indented(folded_sum("time = ", " + ".join([rates[0], *terms])))
        yield f"    return {python_float(E)} ** total * time ** {python_float(forest.work.share)}"
    for number, (nodes, columns) in enumerate(zip(forest.trees, given, strict=True)):
        yield from ("", "", f"def _tree_{number}({columns}):")
        yield from _indented(_ifs(nodes, 0, lambda split: _test(split, formulas, ahead), _guessed))


def _guessed(node: Leaf | Guess) -> list[str]:
    assert isinstance(node, Guess)
    return [f"return {python_float(node.value)}"]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
