"""How much one question may take: a second or two at the very worst, whatever a file says."""

import ast
from collections.abc import Mapping

from tunewise.errors import InvalidModel
from tunewise.models.pieces import ends

MAX_STEPS = 40_000_000  # of some 50 ns: 2,000 choices by 900 trees, the most that we train, may take 31 million
MAX_PARTS = 160_000_000  # of generated code, of some 6 ns: the same model is 65 million
A_TREE, AN_OPERATION = 2, 8  # steps; a split is one


def check_steps(choices: int, steps: int) -> None:
    """Raise InvalidModel where a ranking would take too long; `steps` are those for one choice."""
    if choices * steps > MAX_STEPS:
        raise InvalidModel(_sentence(choices, f"{choices * steps} steps", MAX_STEPS))


def check_parts(candidates: int, parts: int) -> None:
    """Raise InvalidModel where generated code would take too long; `parts` are those for one candidate."""
    if candidates * parts > MAX_PARTS:
        raise InvalidModel(_sentence(candidates, f"{candidates * parts} parts of the code", MAX_PARTS))


def _sentence(choices: int, counted: str, limit: int) -> str:
    few = "choice" if choices == 1 else "choices"
    return f"ranking {choices} {few} takes {counted} a question; at most {limit}: train it with fewer choices"


def parts_of(body: list[ast.stmt], functions: Mapping[str, int] | None = None) -> int:
    """Return how many parts of some statements the longest way through them meets, in functions that it calls too."""
    longest = 0
    for node in reversed(body):
        if isinstance(node, ast.If):
            ways = (parts_of(way, functions) + (0 if ends(way) else longest) for way in (node.body, node.orelse))
            longest = _parts(node.test, functions or {}) + max(ways)
        else:
            longest = _parts(node, functions or {}) + (0 if isinstance(node, ast.Return) else longest)
    return longest


def _parts(node: ast.AST, functions: Mapping[str, int]) -> int:
    """Return the number of expressions in a part of the code; the name of a function counts for what it does."""
    found = (part for part in ast.walk(node) if isinstance(part, ast.expr))
    return sum(1 + functions.get(part.id, 0) if isinstance(part, ast.Name) else 1 for part in found)
