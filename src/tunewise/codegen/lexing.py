"""A last look at generated C and DOT: outside of comments and strings stands only what a generator writes itself."""

import re
from collections.abc import Callable, Collection

from tunewise.codegen.naming import POSITIONAL
from tunewise.errors import InvalidModel

_C_WORDS = frozenset(
    """struct const char double int long static inline volatile return if for continue void define ifndef endif include
    math h string fmod floor pow strcmp f rate rates time word words number count left right rest quotient whole
    rounded choices configs starts ranked leaf k out best last guesses total place candidates x nothing LL""".split()  # noqa: SIM905
)
_C_TOKEN = re.compile(
    r"""(?P<gap>[ \n]+ | /\*(?:(?!\*/)[ -~\n])*\*/ | "(?:[ !#-\[\]-~]|\\[0-7]{3})*" | [-+*/%<>=!&|(){}\[\],;:?.\#])
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?(?:LL)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)""",
    re.VERBOSE,
)
_DOT_WORDS = frozenset("digraph node edge label shape box ellipse note subgraph style rounded key".split())  # noqa: SIM905
_DOT_TOKEN = re.compile(
    r"""(?P<gap>[ \n]+ | "(?:[ !#-\[\]-~]|\\[ -~])*" | -> | [\[\]{}=,;])
      | (?P<word>[A-Za-z][A-Za-z0-9_]*)""",
    re.VERBOSE,
)


def check_c(text: str, prefix: str, names: Collection[str]) -> None:
    """Raise InvalidModel unless every word of the code is C's, the header's own, or an identifier given to a name."""
    own = re.compile(rf"(?:{prefix}|TUNEWISE_{prefix.upper()}|{prefix.upper()})_[A-Za-z0-9_]+|{POSITIONAL.pattern}")
    _check(text, _C_TOKEN, lambda word: word in _C_WORDS or word in names or own.fullmatch(word) is not None)


def check_dot(text: str) -> None:
    """Raise InvalidModel unless every word outside of strings is one that a generator writes."""
    own = re.compile(r"[nt][0-9]+(?:_[0-9]+)?|cluster_[0-9]+")
    _check(text, _DOT_TOKEN, lambda word: word in _DOT_WORDS or own.fullmatch(word) is not None)


def _check(text: str, token: re.Pattern[str], is_ours: Callable[[str], bool]) -> None:
    place = 0
    while place < len(text):
        found = token.match(text, place)
        if found is None or (found.lastgroup == "word" and not is_ours(found.group())):
            line = text.count("\n", 0, place) + 1
            raise InvalidModel(f"line {line} of the generated code holds {text[place : place + 20]!r}: a fault of ours")
        place = found.end()
