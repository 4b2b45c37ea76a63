"""What a call of generated Python costs: `choose` against the same nested ifs as somebody would write them by hand.

Both take the same dict. The one written by hand reads each feature once, checks nothing, and returns the word. Where
choices are compared by what they are expected to take, it works these sums out first, as one would.

Usage: python bench/generated.py [--quick] [--json]
"""

import argparse
import json
import random
import sys
import time
import timeit
from collections.abc import Callable
from itertools import combinations
from math import exp, log
from statistics import median
from typing import Any

from tunewise.codegen import python_source
from tunewise.models import Card, Columns, Derived, Leaf, Model, Number, Op, Split, Tree, Word

CHOICES = ("direct", "blocked", "fft", "sparse")
DTYPES = ("float32", "float64", "bfloat16")
TARGET = 3.0
CASES = {  # numeric features, whether there is a word too, derived ones, depth
    "2 numbers, depth 3": (2, False, 0, 3),
    "3 numbers, depth 5": (3, False, 0, 5),
    "3 numbers and a word, depth 6": (3, True, 0, 6),
    "3 numbers, 2 products, depth 6": (3, False, 2, 6),
    "5 numbers and a word, depth 8": (5, True, 2, 8),
}
COMPARED = "3 numbers, times compared, depth 4"  # what trees over tiled kernels ask
TERMS = 6


def model_of(numbers: int, has_word: bool, products: int, depth: int, rng: random.Random) -> Model:
    problem = [Number("mnkbp"[place], 1.0, 65536.0) for place in range(numbers)]
    inputs = (*problem, *([Word("dtype", DTYPES)] if has_word else []))
    columns = Columns(inputs, (), tuple(Derived("product", (place, place + 1)) for place in range(products)))
    nodes: list[Split | Leaf] = [Leaf((rng.randrange(len(CHOICES)),))]
    ends = [(0, 0)]
    for place, level in ends:
        if level == depth:
            continue
        column = rng.randrange(len(columns.inputs) + products)
        is_word = has_word and column == numbers
        scale = 2 if column >= len(inputs) else 1
        asked: dict[str, Any] = {"words": (rng.randrange(3),)} if is_word else {"threshold": size(rng, scale)}
        nodes[place] = Split(column, len(nodes), len(nodes) + 1, **asked)
        ends += [(len(nodes), level + 1), (len(nodes) + 1, level + 1)]
        nodes += [Leaf((rng.randrange(len(CHOICES)),)), Leaf((rng.randrange(len(CHOICES)),))]
    choices = tuple({"choice": word} for word in CHOICES)
    return Model(card=Card(decision="bench"), choices=choices, columns=columns, body=Tree(tuple(nodes)))


def comparing(depth: int, rng: random.Random) -> Model:
    """Return a tree that asks which of two choices takes longer: each takes a sum of products of sizes and rests."""
    derived: list[Derived] = []

    def column(op: Op, of: tuple[int, ...], by: float | None = None) -> int:
        derived.append(Derived(op, of, by))
        return 2 + len(derived)

    times = []
    for _ in CHOICES:
        rests = [column("remainder", (place,), rng.choice((4.0, 6.0, 16.0, 32.0))) for place in range(2)]
        terms = [
            column("product", (rng.choice((0, rests[0])), rng.choice((1, rests[1])), 2), 0.5) for _ in range(TERMS)
        ]
        times.append(column("sum", tuple(terms), 100.0))
    asked = [column("ratio", pair) for pair in combinations(times, 2)]
    nodes: list[Split | Leaf] = []
    for place in range(2 ** (depth + 1) - 1):
        is_leaf = place >= 2**depth - 1
        split = Split(rng.choice(asked), 2 * place + 1, 2 * place + 2, threshold=exp(rng.gauss(0, 0.3)))
        nodes.append(Leaf((rng.randrange(len(CHOICES)),)) if is_leaf else split)
    columns = Columns(tuple(Number(name, 1.0, 65536.0) for name in "mnk"), (), tuple(derived))
    choices = tuple({"choice": word} for word in CHOICES)
    return Model(card=Card(decision="bench"), choices=choices, columns=columns, body=Tree(tuple(nodes)))


def size(rng: random.Random, scale: int = 1) -> float:
    return float(round(exp(rng.uniform(0, log(65536) * scale))))


def by_hand(model: Model) -> str:
    """Return the tree as somebody would write it: a local a feature, whole sizes as such, if and else."""
    names = [column.name for column in model.columns.problem]
    lines = ["def choose(features):", *(f"    {name} = features[{name!r}]" for name in names)]
    asked = list(model.columns.names)
    if any(derived.op == "sum" for derived in model.columns.derived):
        asked = [*names, *(f"d{place}" for place in range(len(names), len(asked)))]
        lines += sums(model.columns, asked)

    def write(number: int, indent: str) -> None:
        node = model.body.nodes[number]  # type: ignore[union-attr]
        if isinstance(node, Leaf):
            lines.append(f"{indent}return {CHOICES[node.ranking[0]]!r}")
            return
        name = asked[node.column]
        test = f"{name} == {DTYPES[node.words[0]]!r}" if node.words else f"{name} <= {node.threshold:.17g}"
        lines.append(f"{indent}if {test}:")
        write(node.low, indent + "    ")
        lines.append(f"{indent}else:")
        write(node.high, indent + "    ")

    write(0, "    ")
    return "\n".join(lines) + "\n"


def sums(columns: Columns, names: list[str]) -> list[str]:
    """Return the lines that work out what is compared, terms within their sums."""
    signs = {"remainder": " % ", "product": " * ", "sum": " + ", "ratio": " / "}
    lines, texts = [], list(names)
    for place, derived in enumerate(columns.derived, start=len(columns.problem)):
        by = [] if derived.by is None else [f"{derived.by:g}"]
        text = signs[derived.op].join([*(texts[number] for number in derived.of), *by])
        if derived.op == "product":
            texts[place] = text
        else:
            lines.append(f"    {names[place]} = {text}")
    return lines


def function(text: str) -> Callable[[dict[str, Any]], Any]:
    namespace: dict[str, Any] = {}
    exec(compile(text, "<bench>", "exec"), namespace)
    chosen: Callable[[dict[str, Any]], Any] = namespace["choose"]
    return chosen


def problems(model: Model, rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {c.name: rng.choice(DTYPES) if isinstance(c, Word) else int(size(rng)) for c in model.columns.problem}
        for _ in range(count)
    ]


def cost_us(choose: Callable[[dict[str, Any]], Any], asked: list[dict[str, Any]], number: int) -> float:
    statement = "for features in asked: choose(features)"
    names = {"choose": choose, "asked": asked}
    taken = timeit.timeit(statement, timer=time.process_time, globals=names, number=number)
    return taken / number / len(asked) * 1e6


def compare(model: Model, rng: random.Random, *, rounds: int, number: int) -> dict[str, float]:
    ours, hand = function(python_source(model)), function(by_hand(model))
    asked = problems(model, rng, 200)
    assert all(ours(features) == hand(features) for features in asked)
    pairs = [(cost_us(ours, asked, number), cost_us(hand, asked, number)) for _ in range(rounds)]
    return {
        "generated_us": min(pair[0] for pair in pairs),
        "by_hand_us": min(pair[1] for pair in pairs),
        "ratio": median(pair[0] / pair[1] for pair in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds, number = (5, 30) if options.quick else (25, 100)
    rng = random.Random(1)
    models = {name: model_of(*case, rng) for name, case in CASES.items()} | {COMPARED: comparing(4, rng)}
    figures = {name: compare(model, rng, rounds=rounds, number=number) for name, model in models.items()}
    worst = max(figure["ratio"] for figure in figures.values())
    target, is_held = f"generated <= {TARGET:g}x by hand", worst <= TARGET
    if options.json:
        json.dump({"cases": figures, "worst_ratio": worst, "targets": {target: is_held}}, sys.stdout, indent=2)
        return
    for name, figure in figures.items():
        print(
            f"{name:36} generated {figure['generated_us']:6.3f} us, by hand {figure['by_hand_us']:6.3f} us: "
            f"{figure['ratio']:.2f}x"
        )
    print(f"target {target}: {'held' if is_held else 'not held'} (worst {worst:.2f}x)")


if __name__ == "__main__":
    main()
