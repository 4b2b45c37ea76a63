"""Tables of what others' files say won: a rule for each problem, and back."""

from collections.abc import Sequence
from dataclasses import replace

from tunewise.decision import Timing
from tunewise.errors import InvalidData
from tunewise.formats.findings import Finding, problem_of
from tunewise.heuristics.table import Rule, Table
from tunewise.heuristics.table_conditions import Condition, OneOf


def table_of(findings: Sequence[Finding], *, nearest: str | None = None, about: str = "") -> Table:
    """Return a table that answers every problem of some findings, all of one decision and device, with its config.

    With `nearest`, a feature, other numbers of it get the answer of the nearest one. Raises InvalidData where a problem
    has no such number.
    """
    first = findings[0]
    for finding in findings if nearest is not None else ():
        if nearest not in finding.problem.numeric:
            has = ", ".join(finding.problem.numeric) or "none"
            raise InvalidData(f"{first.decision} has no number {nearest!r} to answer the nearest of; it has {has}")
    hardware = {"name": first.device} if first.device else {}
    return Table(first.decision, tuple(map(_rule, findings)), nearest, hardware, about=about)


def findings_of(table: Table) -> tuple[list[Finding], int]:
    """Return what a table says of single problems, and the number of rules that are about more than one."""
    exact = [rule for rule in table.rules if all(map(_is_exact, rule.when.values()))]
    device = str(table.hardware.get("name", ""))
    return [_finding(table.decision, device, rule) for rule in exact], len(table.rules) - len(exact)


def _is_exact(condition: Condition) -> bool:
    return isinstance(condition, OneOf) and len(condition.values) == 1


def _rule(finding: Finding) -> Rule:
    when = {name: OneOf((value,)) for name, value in finding.problem.items()}
    return Rule(when, (finding.config,), finding.time_s, dict(finding.versions))


def _finding(decision: str, device: str, rule: Rule) -> Finding:
    features = {name: c.values[0] for name, c in rule.when.items() if isinstance(c, OneOf)}
    found = Finding(decision, problem_of(features), rule.configs[0], None, device, rule.versions)
    return found if rule.time_s is None else replace(found, outcome=Timing((rule.time_s,)))
