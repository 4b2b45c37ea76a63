"""A model as a header for C and C++: a struct of features in, the number of a choice out."""

import re
from collections.abc import Iterator, Sequence

from tunewise.codegen import cbody, ctables
from tunewise.codegen.lexing import check_c
from tunewise.codegen.literals import c_remark
from tunewise.codegen.naming import identifiers, plain_word
from tunewise.codegen.python import bounds, facts
from tunewise.models import Model, Word

# Words of C and C++, macros that compilers and common headers define, and what the header calls itself.
_RESERVED = frozenset(
    """alignas alignof and and_eq asm assert atomic auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit
    continue decltype default delete do double dynamic_cast else enum errno explicit export extern false final float
    for friend goto i386 if imaginary import inline int linux long mutable module namespace new noexcept noreturn not
    not_eq nullptr operator or or_eq override private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast stderr stdin stdout struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void
    volatile wchar_t while xor xor_eq f fmod floor pow strcmp math_errhandling NULL EOF BUFSIZ NAN INFINITY MAXFLOAT
    MB_CUR_MAX RAND_MAX EXIT_SUCCESS EXIT_FAILURE FD_SETSIZE NFDBITS BYTE_ORDER BIG_ENDIAN LITTLE_ENDIAN PDP_ENDIAN
    WNOHANG WUNTRACED WSTOPPED WEXITED WCONTINUED WNOWAIT""".split()  # noqa: SIM905
)
# Families of such macros, with a member for every type of number: M_PI, M_PIf, M_PIf128.
_MACRO = re.compile(
    r"M_(?:E|PI|LN2|LN10|LOG2E|LOG10E|SQRT2|SQRT1_2|[12]_PI|2_SQRTPI|PI_[24])(?:[fl][0-9x]*)?"
    r"|FP_(?:NAN|INFINITE|ZERO|SUBNORMAL|NORMAL|INT_\w+|FAST_\w+|I?L?LOGB\w+)"
    r"|(?:HUGE_VAL|SNAN)\w*|MATH_ERR\w+"
)

_CHOOSE = """/* Return the number of the best choice, or -1 where the default is as good a guess. */
static inline int {p}_choose(const struct {p}_features *f)
{{
    int best = -1;
    return {p}_rank(f, 1, &best) > 0 ? best : -1;
}}"""


def c_source(model: Model) -> str:
    """Return the model as the text of a header that compiles as C99 and as C++; one that includes math.h needs -lm.

    It has `struct P_features`, `int P_choose(const struct P_features *)`, `int P_rank(features, k, int *out)`,
    `const char *P_choice(int)` and, where all configs have the same parameters, `P_config_of(int)`; P is the decision's
    name. Raises InvalidModel for an unsound model, or a word that C cannot hold.
    """
    model.check()
    prefix = plain_word(model.card.decision, "decision")
    names = _identifiers([column.name for column in model.columns.inputs], prefix)
    fields = _identifiers(list(model.choices[0]), prefix)
    text = "\n".join(_lines(model, prefix, names, fields)) + "\n"
    check_c(text, prefix, {*names, *fields})
    return text


def _identifiers(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    own = re.compile(rf"{prefix}_.*|{prefix.upper()}_CHOICES|{_guard(prefix)}")  # what the header might call its own
    taken = [name for name in names if own.fullmatch(name) or _MACRO.fullmatch(name)]
    return identifiers(names, _RESERVED.union(taken))


def _guard(prefix: str) -> str:
    return f"TUNEWISE_{prefix.upper()}_H"


def _lines(model: Model, prefix: str, names: Sequence[str], fields: Sequence[str]) -> Iterator[str]:
    guard, functions = _guard(prefix), list(cbody.functions(model, prefix, names))
    yield "/* A heuristic learned by tunewise: which choice is fastest for a problem. */"
    yield "/* Generated code: rather than edit it, measure more and train again. */"
    yield from (f"/* {c_remark(line).rstrip()} */" for line in facts(model))
    yield from ("", f"#ifndef {guard}", f"#define {guard}", "")
    if cbody.needs_math(functions):
        yield "#include <math.h>"
    if any(isinstance(column, Word) for column in model.columns.problem):
        yield "#include <string.h>"
    yield from _struct(model, prefix, names)
    yield from ("", *ctables.choices(model, prefix), "", *ctables.configs(model, prefix, fields))
    yield from functions
    yield from ("", _CHOOSE.format(p=prefix), "", f"#endif /* {guard} */")


def _struct(model: Model, prefix: str, names: Sequence[str]) -> Iterator[str]:
    yield from ("", "/* A problem: numbers as doubles, words as strings. */", f"struct {prefix}_features", "{")
    for column, name in zip(model.columns.problem, names, strict=False):
        kind = "const char *" if isinstance(column, Word) else "double "
        yield f"    {kind}{name}; /* {c_remark(bounds(column))} */"
    if not model.columns.problem:
        yield "    char nothing; /* the answer is the same for every problem */"
    yield "};"
