"""What a sound table may still have wrong: rules that never answer, and configs that are not in the space."""

from collections.abc import Iterator
from dataclasses import dataclass

from tunewise.decision import Declaration
from tunewise.heuristics.table import Rule, Table
from tunewise.heuristics.table_conditions import covers

FACTS = ("name", "kind", "capability", "cores", "isa", "memory_gib", "l1d", "l2", "l3", "local")  # of devices
_MOST = 2000  # rules compared with each other; beyond that only equal conditions are found


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a rule; a fault is one that keeps a config from being used at all."""

    rule: int  # from 1; 0 where it is about the whole table
    what: str
    is_fault: bool = False

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.what}" if self.rule else self.what


def remarks(table: Table, declaration: Declaration | None = None) -> list[Remark]:
    """Return what is wrong with a table, by rule; configs are looked at where the decision's declaration is known."""
    found = [*_strange_facts(table), *_unreachable(table)]
    found += _outside(table, declaration) if declaration is not None else ()
    return sorted(found, key=lambda remark: remark.rule)


def _strange_facts(table: Table) -> Iterator[Remark]:
    for name in table.hardware:
        if name not in FACTS:
            yield Remark(0, f"no device tells the fact {name!r}, so it never answers; there are {', '.join(FACTS)}")


def _unreachable(table: Table) -> Iterator[Remark]:
    asked = [(number, table.rules[number]) for number in table.asked]
    if len(asked) > _MOST:
        yield from _repeated(asked)
        return
    for place, (number, rule) in enumerate(asked):
        first = next((other for other, wide in asked[:place] if _is_covered(rule, wide)), None)
        if first is not None:
            yield Remark(number + 1, f"never answers first: rule {first + 1} fits wherever it does")


def _repeated(asked: list[tuple[int, Rule]]) -> Iterator[Remark]:
    seen: dict[str, int] = {}
    for number, rule in asked:
        first = seen.setdefault(str(dict(sorted(rule.when.items()))), number)
        if first != number:
            yield Remark(number + 1, f"never answers first: rule {first + 1} fits wherever it does")


def _is_covered(rule: Rule, wide: Rule) -> bool:
    return all(name in rule.when and covers(condition, rule.when[name]) for name, condition in wide.when.items())


def _outside(table: Table, declaration: Declaration) -> Iterator[Remark]:
    if table.decision != declaration.name:
        yield Remark(0, f"it is about {table.decision!r}, and so never asked by {declaration.name!r}", is_fault=True)
    for number, rule in enumerate(table.rules, 1):
        for place, config in enumerate(rule.configs, 1):
            strange = [name for name in config if name not in declaration.default]
            reason = declaration.space.why_not({**declaration.default, **config})
            if strange:
                reason = f"{declaration.name} has no parameter {strange[0]!r}"
            if reason is not None:
                yield Remark(number, f"config {place}: {reason}", is_fault=True)
