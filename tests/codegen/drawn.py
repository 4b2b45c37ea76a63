"""Models and problems by chance: every kind of column, body and choice, with thresholds that problems really meet."""

import math
import random
from collections.abc import Iterator, Sequence

from tunewise.errors import InvalidModel
from tunewise.models import Card, Columns, Derived, Forest, Guess, Input, Leaf, Model, Number, Split, Tree, Word, Work

OPS = ("product", "ratio", "sum", "difference", "remainder", "whole", "tiles", "windows")
BOUNDS = ((1.0, 4096.0), (0.0, 1.0), (-5.0, 5.0), (1.0, 2.0**62), (0.001, 1e9), (16.0, 16.0), (-1e300, 1e300))
Features = dict[str, object]


def draw_model(rng: random.Random, *, names: Sequence[str] | None = None, decision: str = "drawn") -> Model:
    """Return a sound model; `names`, where given, are used for everything that has a name."""
    call = (lambda: rng.choice(names)) if names else (lambda: rng.choice("mnkpqrst") + str(rng.randrange(10, 99)))
    problem = _inputs(rng, call, rng.randrange(1, 6))
    is_forest = rng.random() < 0.4
    config = _inputs(rng, call, rng.randrange(0, 4)) if is_forest else ()
    columns = _derive(rng, Columns(problem, config))
    keys = rng.sample(names, 2) if names else ["a", "b"]
    choices = tuple(_choice(rng, call, config, () if is_forest else keys) for _ in range(rng.randrange(1, 7)))
    if not is_forest and rng.random() < 0.5:
        words = list(dict.fromkeys(call() for _ in range(6)))
        choices = tuple({"choice": word} for word in words)
    body = _forest(rng, columns, len(choices)) if is_forest else _tree(rng, columns, len(choices))
    fence = {call(): rng.choice([call(), 3, 2.5, None, True])} if rng.random() < 0.5 else {}
    card = Card(
        decision=decision, fence=fence, fingerprint=call(), created="2026-01-31", learner=call(), scores={call(): 1.5}
    )
    model = Model(card=card, choices=choices, default=0, columns=columns, body=body)
    model.check()
    return model


def problems_of(model: Model, rng: random.Random, count: int) -> Iterator[Features]:
    """Yield problems: within and outside of the bounds, whole numbers and others, and strange values now and then."""
    for _ in range(count):
        features = {column.name: _value(rng, column) for column in model.columns.problem}
        if rng.random() < 0.1:
            features[rng.choice(list(features))] = rng.choice(
                [None, "", "17", float("nan"), float("inf"), 10**400, -(10**400), True, 1j, [1.0], {}, b"x", -0.0]
            )
        if rng.random() < 0.05:
            features.pop(rng.choice(list(features)))
        yield features


def edges_of(model: Model) -> Iterator[Features]:
    """Yield problems at every threshold, bound and its two neighbours; all other features lie within their bounds."""
    inside = {c.name: c.words[0] if isinstance(c, Word) else (c.low + c.high) / 2 for c in model.columns.problem}
    trees = [model.body.nodes] if isinstance(model.body, Tree) else model.body.trees
    points: dict[str, set[float]] = {}
    for nodes in trees:
        for node in nodes:
            if isinstance(node, Split) and not node.words and node.column < len(model.columns.problem):
                points.setdefault(model.columns.problem[node.column].name, set()).add(node.threshold)
    for column in model.columns.problem:
        if isinstance(column, Number):
            points.setdefault(column.name, set()).update((column.low, column.high))
    for name, values in points.items():
        for value in values:
            for near in (math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)):
                yield {**inside, name: near}
                if near.is_integer():
                    yield {**inside, name: int(near)}


def beside(features: Features, rng: random.Random) -> Iterator[Features]:
    """Yield a problem, and the same with one number moved to either neighbour: what a derived threshold turns on."""
    yield features
    numbers = [name for name, value in features.items() if isinstance(value, float) and math.isfinite(value)]
    if numbers:
        name = rng.choice(numbers)
        value = features[name]
        assert isinstance(value, float)
        yield {**features, name: math.nextafter(value, -math.inf)}
        yield {**features, name: math.nextafter(value, math.inf)}


def _inputs(rng: random.Random, call: object, count: int) -> tuple[Input, ...]:
    assert callable(call)
    names = list(dict.fromkeys(call() for _ in range(count)))
    return tuple(_input(rng, name, call) for name in names)


def _input(rng: random.Random, name: str, call: object) -> Input:
    assert callable(call)
    if rng.random() < 0.3:
        return Word(name, tuple(dict.fromkeys(call() for _ in range(rng.randrange(1, 5)))))
    return Number(name, *rng.choice(BOUNDS))


def _derive(rng: random.Random, columns: Columns) -> Columns:
    for _ in range(rng.randrange(0, 10)):
        total = len(columns.inputs) + len(columns.derived)
        op = rng.choice(OPS)
        of = tuple(rng.randrange(total) for _ in range(rng.choice((1, 2, 2, 3))))
        by = rng.choice([2.0, 64.0, 0.1, -3.0, 1.0]) if len(of) == 1 else None
        try:
            more = Columns(columns.problem, columns.config, (*columns.derived, Derived(op, of, by)))
            more.check()
        except InvalidModel:
            continue
        columns = more
    return columns


def _choice(rng: random.Random, call: object, config: Sequence[Input], keys: Sequence[str]) -> dict[str, object]:
    assert callable(call)
    if not keys:
        return {
            c.name: rng.choice(c.words) if isinstance(c, Word) else rng.choice([c.low, c.high, (c.low + c.high) / 2])
            for c in config
        }
    return {name: rng.choice([1, 2.5, call(), True, None, -(1 << 63), (1 << 64) - 1]) for name in keys}


def _row(rng: random.Random, columns: Columns) -> list[float]:
    known = [
        float(rng.randrange(len(c.words))) if isinstance(c, Word) else c.low + (c.high - c.low) * rng.random()
        for c in columns.inputs
    ]
    return columns.row(known)


def _split(rng: random.Random, columns: Columns, low: int, high: int) -> Split:
    column = rng.randrange(len(columns.inputs) + len(columns.derived))
    given = columns.inputs[column] if column < len(columns.inputs) else None
    if isinstance(given, Word):
        words = rng.sample(range(len(given.words)), rng.randrange(1, len(given.words) + 1))
        return Split(column, low, high, words=tuple(words))
    return Split(column, low, high, threshold=_row(rng, columns)[column])


def _nodes(rng: random.Random, columns: Columns, leaf: object, most: int) -> list[Split | Leaf | Guess]:
    assert callable(leaf)
    nodes: list[Split | Leaf | Guess] = [leaf()]
    ends = [0]
    for _ in range(rng.randrange(0, most)):
        place = ends.pop(rng.randrange(len(ends)))
        nodes[place] = _split(rng, columns, len(nodes), len(nodes) + 1)
        ends += (len(nodes), len(nodes) + 1)
        nodes += (leaf(), leaf())
    return nodes


def _tree(rng: random.Random, columns: Columns, choices: int) -> Tree:
    def leaf() -> Leaf:
        ranked = rng.sample(range(choices), rng.randrange(0, choices + 1))
        return Leaf(tuple(ranked), rng.randrange(0, 50), 1.0 + rng.random(), 1.0 + rng.random())

    return Tree(tuple(_nodes(rng, columns, leaf, 16)))  # type: ignore[arg-type]


def _forest(rng: random.Random, columns: Columns, choices: int) -> Forest:
    def leaf() -> Guess:
        return Guess(rng.choice([0.0, 0.25, -0.25, rng.gauss(0, 1)]))

    trees = tuple(tuple(_nodes(rng, columns, leaf, 6)) for _ in range(rng.randrange(0, 6)))
    work = _work(rng, columns, choices) if rng.random() < 0.5 else None
    return Forest(trees, base=rng.gauss(0, 1), work=work)  # type: ignore[arg-type]


def _work(rng: random.Random, columns: Columns, choices: int) -> Work:
    may_be = [
        number
        for number, (low, high) in enumerate(columns.bounds)
        if low >= 0 and high < 1e20 and not (number < len(columns.inputs) and isinstance(columns.inputs[number], Word))
    ]
    amounts = tuple(rng.sample(may_be, rng.randrange(0, len(may_be) + 1)))
    rates = tuple(
        (rng.uniform(1e-9, 1e-3), *(rng.choice([0.0, 1e-9, rng.random()]) for _ in amounts)) for _ in range(choices)
    )
    return Work(amounts, rates, rng.choice([1.0, 0.5, rng.uniform(0.1, 1.0)]))


def _value(rng: random.Random, column: Input) -> object:
    if isinstance(column, Word):
        return rng.choice([*column.words, *column.words, "unknown"])
    span = column.high - column.low
    value = (
        column.low + span * (rng.random() * 1.1 - 0.05) if math.isfinite(span) else rng.choice((-1, 1)) * rng.random()
    )
    return int(value) if rng.random() < 0.5 else value
