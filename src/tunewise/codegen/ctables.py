"""The choices of a model as tables of a C header: their text, and the values of their parameters."""

from collections.abc import Callable, Iterator, Sequence

from tunewise.codegen.functions import has_words
from tunewise.codegen.literals import c_integer, c_remark, c_string, python_float
from tunewise.codegen.naming import remark
from tunewise.decision import Scalar, canonical
from tunewise.models import Model

_LARGEST = (1 << 63) - 1


def choices(model: Model, prefix: str) -> Iterator[str]:
    """Yield the function that gives a choice as text: its word, or its config as JSON."""
    words = has_words(model)
    yield f"#define {prefix.upper()}_CHOICES {len(model.choices)}"
    yield ""
    yield "/* Return a choice as text, or a null pointer for a number that is none. */"
    yield f"static inline const char *{prefix}_choice(int number)"
    yield "{"
    yield "    static const char *const choices[] = {"
    for choice in model.choices:
        yield f"        {c_string(str(choice['choice']) if words else canonical.encode(choice))},"
    yield "    };"
    yield f"    return number >= 0 && number < {len(model.choices)} ? choices[number] : 0;"
    yield "}"


def configs(model: Model, prefix: str, fields: Sequence[str]) -> Iterator[str]:
    """Yield the struct of a config and the function that gives one; nothing where configs differ in parameters."""
    names = list(model.choices[0])
    if has_words(model) or not names or any(list(choice) != names for choice in model.choices):
        return
    kinds = [_kind([choice[name] for choice in model.choices]) for name in names]
    yield from ("/* A choice as the values of its parameters. */", f"struct {prefix}_config", "{")
    for name, field, (declared, _) in zip(names, fields, kinds, strict=True):
        yield f"    {declared}{field}; /* {c_remark(remark(name))} */"
    yield from ("};", "")
    yield "/* Return a config, or a null pointer for a number that is none. */"
    yield f"static inline const struct {prefix}_config *{prefix}_config_of(int number)"
    yield "{"
    yield f"    static const struct {prefix}_config configs[] = {{"
    for choice in model.choices:
        yield f"        {{{', '.join(write(choice[name]) for name, (_, write) in zip(names, kinds, strict=True))}}},"
    yield "    };"
    yield f"    return number >= 0 && number < {len(model.choices)} ? &configs[number] : 0;"
    yield from ("}", "")


def _kind(values: Sequence[Scalar]) -> tuple[str, Callable[[Scalar], str]]:
    """Return the C type that holds all values of a parameter, and how one is written; JSON text holds them all."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "int ", lambda value: str(int(value is True))
    if kinds == {int} and all(isinstance(value, int) and value <= _LARGEST for value in values):
        return "long long ", lambda value: c_integer(value) if isinstance(value, int) else ""
    if kinds == {float}:
        return "double ", lambda value: python_float(value) if isinstance(value, float) else ""
    if kinds == {str}:
        return "const char *", lambda value: c_string(str(value))
    return "const char *", lambda value: c_string(canonical.encode(value))
