"""How well a tuned shape serves another: our bounded near match beside vLLM's unbounded nearest M, in one run.

Usage: python bench/near.py [--quick] [--json]

The measurements are `choices/c_gemm.csv` of the folder that TUNEWISE_DATA names: the configs of a C kernel on many
shapes. Each shape in turn is held out and asked of the others, whose winners are known. vLLM's rule, by our own reader
of its tables, takes the winner of the nearest M, however far, and looks at nothing else; asked within its files, which
are one for each N and K, it mostly has no file and is its default. Our near match, by the ladder itself, takes the
winner of the nearest shape within a factor in every number, and the default where there is none.

Regret is chosen time / best time. Coverage is how many shapes another shape answered for, `where` is the regret there,
and `vLLM there` that of the nearest M on the very same shapes.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Config, Declaration, Environment, Problem, Space, Subject, Verdict, lower_half_mean  # noqa: E402
from tunewise.formats.findings import Finding  # noqa: E402
from tunewise.heuristics.table_findings import table_of  # noqa: E402
from tunewise.session.ladder import Question, climb  # noqa: E402
from tunewise.store.memory import MemoryStore  # noqa: E402

FACTORS = (1.25, 1.5, 2.0, 4.0, 8.0)
NAME, VLLM, OURS = "c-gemm", "vLLM, nearest M", f"ours, within {FACTORS[0]:g}x"
_NO_PARAMETER = ("shape", "cfg", "ok", "compile_s", "inner")


@dataclass(frozen=True)
class Shape:
    """One shape: how long every config that gave the right result took on it, by its number."""

    problem: Problem
    times_s: Mapping[int, float]

    @property
    def winner(self) -> int:
        return min(self.times_s, key=lambda number: self.times_s[number])

    def regret(self, number: int) -> float:
        slowest = max(self.times_s.values())  # a config that is wrong or missing here counts as the slowest
        return self.times_s.get(number, slowest) / self.times_s[self.winner]


@dataclass(frozen=True)
class Answered:
    """What a rule came to on all shapes: regrets, and on which of them another shape answered."""

    regrets: Sequence[float]
    by_another: Sequence[bool]

    def summary(self, vllm: "Answered") -> dict[str, float | None]:
        ordered = sorted(self.regrets)
        return {
            "regret": geomean(self.regrets),
            "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
            "worst": ordered[-1],
            "coverage": sum(self.by_another) / len(ordered),
            "where": self.where(self.regrets),
            "vLLM there": self.where(vllm.regrets),
        }

    def where(self, regrets: Sequence[float]) -> float | None:
        """Return the mean of some regrets on the shapes that another shape answered for here; None if none was."""
        found = [regret for regret, is_near in zip(regrets, self.by_another, strict=True) if is_near]
        return geomean(found) if found else None


Rule = Callable[[Shape, Sequence[Shape]], tuple[int, bool]]


def geomean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def loaded(file: Path) -> tuple[list[Shape], list[Config]]:
    """Return the shapes and the configs by number; the first config is the default."""
    configs: dict[int, Config] = {}
    times: dict[str, dict[int, float]] = {}
    with file.open() as stream:
        for row in csv.DictReader(stream):
            number = int(row["cfg"])
            samples = [float(cell) for name, cell in row.items() if name[0] == "t" and name[1:].isdigit() and cell]
            params = [name for name in row if name not in _NO_PARAMETER and not (name[0] == "t" and name[1:].isdigit())]
            configs[number] = {name: int(row[name]) for name in params}
            if row["ok"] == "1" and samples:
                times.setdefault(row["shape"], {})[number] = lower_half_mean(samples)
    sizes = {shape: dict(zip("MNK", map(int, shape.split("x")), strict=True)) for shape in times}
    return [Shape(Problem(sizes[shape]), found) for shape, found in times.items()], [
        configs[n] for n in sorted(configs)
    ]


def default(shape: Shape, others: Sequence[Shape]) -> tuple[int, bool]:
    return 0, False


def nearest_m(configs: Sequence[Config], *fixed: str) -> Rule:
    """Return vLLM's rule: the nearest M, among the shapes that are equal in some other sizes, else the default."""

    def asked(shape: Shape) -> dict[str, Any]:
        return {name: shape.problem[name] for name in ("M", *fixed)}

    def rule(shape: Shape, others: Sequence[Shape]) -> tuple[int, bool]:
        findings = [Finding(NAME, Problem(asked(other)), configs[other.winner]) for other in others]
        ranked = table_of(findings, nearest="M").rank(asked(shape))
        return (configs.index(ranked[0]), True) if ranked else (0, False)

    return rule


def near(configs: Sequence[Config], factor: float) -> Rule:
    """Return our rule: what the ladder answers when the others were tuned and this shape was not."""
    declared = Declaration(NAME, space=Space.of(list(configs)), default=configs[0], near=factor)

    def subject(shape: Shape) -> Subject:
        return Subject(NAME, shape.problem, (), Environment(()))

    def rule(shape: Shape, others: Sequence[Shape]) -> tuple[int, bool]:
        store = MemoryStore()
        for other in others:
            ending = "tie" if other.winner == 0 else "win"
            store.conclude(subject(other), Verdict(ending, configs[0], configs[other.winner], challenger_s=(1.0,)))
        answer = climb(Question(declared, subject(shape), (), store, lambda: store.subjects(NAME)), "use")
        return configs.index(dict(answer.config)), answer.rung == "near"

    return rule


def judged(shapes: Sequence[Shape], rule: Rule) -> Answered:
    found = [rule(shape, [other for other in shapes if other is not shape]) for shape in shapes]
    regrets = [shape.regret(number) for shape, (number, _) in zip(shapes, found, strict=True)]
    return Answered(regrets, [is_near for _, is_near in found])


def measured(shapes: Sequence[Shape], configs: Sequence[Config], factors: Sequence[float]) -> dict[str, Any]:
    rules: dict[str, Rule] = {
        "the default": default,
        VLLM: nearest_m(configs),
        "vLLM, a file for N and K": nearest_m(configs, "N", "K"),
        **{f"ours, within {factor:g}x": near(configs, factor) for factor in factors},
    }
    answered = {name: judged(shapes, rule) for name, rule in rules.items()}
    return {name: found.summary(answered[VLLM]) for name, found in answered.items()}


def targets_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    ours, theirs = found[OURS], found[VLLM]
    said = f"our near match, which answers for {ours['coverage']:.0%} of the shapes, loses no more than {VLLM}"
    return {said: ours["regret"] <= theirs["regret"]}


def show(found: Mapping[str, Mapping[str, Any]]) -> None:
    columns = ("regret", "p95", "worst", "coverage", "where", "vLLM there")
    print(f"{'rule':<26}" + "".join(f"{name:>11}" for name in columns))
    for name, row in found.items():
        cells = ["-" if row[column] is None else f"{row[column]:.3f}" for column in columns]
        print(f"{name:<26}" + "".join(f"{cell:>11}" for cell in cells))
    ours, theirs = found[OURS], found[VLLM]
    for name in ("regret", "p95", "worst"):
        print(f"ours / vLLM's nearest M, {name}: {ours[name] / theirs[name]:.3f}")
    for target, is_held in targets_of(found).items():
        print(f"target {target}: {'held' if is_held else 'not held'}")
    for name, row in found.items():
        if name.startswith("ours") and row["where"] is not None:
            ratio = row["where"] / row["vLLM there"]
            print(
                f"{name}, where it answers, ours / vLLM's on the same {row['coverage']:.0%} of the shapes: {ratio:.3f}"
            )
    if not ours["coverage"]:
        print(f"within {FACTORS[0]:g}x, our setting, nothing is near here: what is compared above is the default")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="our default factor only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    file = Path(os.environ.get("TUNEWISE_DATA", "")) / "choices" / "c_gemm.csv"
    if not file.is_file():
        print("no measurements: set TUNEWISE_DATA to the folder whose choices/ holds c_gemm.csv", file=sys.stderr)
        return
    shapes, configs = loaded(file)
    found = measured(shapes, configs, FACTORS[:1] if options.quick else FACTORS)
    if options.json:
        told = {"shapes": len(shapes), "configs": len(configs), "rules": found, "targets": targets_of(found)}
        json.dump(told, sys.stdout)
        return
    print(f"{len(shapes)} shapes, {len(configs)} configs, each shape asked of the others; regret is chosen / best")
    show(found)


if __name__ == "__main__":
    main()
