"""Names as identifiers and as remarks: a column keeps its own name where that is harmless, else it gets a number."""

import re
from collections.abc import Collection, Sequence

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*")  # no two underscores in a row: C++ keeps those
# What generators call inputs by their place, words and lists of them, rates, derived columns, times of choices, trees.
POSITIONAL = re.compile(r"(?:[frwx]|part|words_)[0-9]+|time_(?:[0-9]+|default)|_tree_[0-9]+")
_LONGEST = 40
_REMARK = 200  # characters of a name that a comment shows


def identifiers(names: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """Return an identifier for every name, all different: the name itself, or f0, f1, ... by its place.

    A name is replaced if it is no plain ASCII identifier, too long, in `taken`, a repetition, or looks positional.
    """
    found: list[str] = []
    for place, name in enumerate(names):
        is_plain = len(name) <= _LONGEST and _SAFE.fullmatch(name) and not POSITIONAL.fullmatch(name)
        found.append(name if is_plain and name not in taken and name not in found else f"f{place}")
    return tuple(found)


def remark(text: str) -> str:
    """Return a text as printable ASCII on one line, cut where it is long: what a comment may hold."""
    shown = ascii(text)[1:-1]
    return shown if len(shown) <= _REMARK else shown[:_REMARK] + "..."


def plain_word(text: str, otherwise: str) -> str:
    """Return a text in lower case as the beginning of an identifier, or `otherwise` where nothing of it is left."""
    letters = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_LONGEST].strip("_")
    return letters if letters[:1].isalpha() else f"{otherwise}_{letters}" if letters else otherwise
