"""A model as a Python module that imports nothing and reads like the heuristic somebody might have written."""

from collections.abc import Iterator

from tunewise.codegen.functions import candidates, functions, has_words, names_of
from tunewise.codegen.literals import folded, python, python_dict
from tunewise.codegen.naming import remark
from tunewise.models import Columns, Forest, Input, Model, Word
from tunewise.models.grammar import check_source
from tunewise.models.templates import CHOOSE, RANK

_RANKING = '''def _ranking(features):
    """Return the choices for a problem, best first; empty outside what was measured."""'''


def python_source(model: Model) -> str:
    """Return the model as Python text with `choose(features)` and `rank(features, k=None)`.

    Both take a dict and never raise for what is in it: `choose` returns None, and `rank` an empty list, where a feature
    is missing, of another kind, or outside what the model was learned from. Where the one parameter is called `choice`
    they speak of words, else of configs. Raises InvalidModel for an unsound model or one too large for a module.
    """
    model.check()
    lines = [*_opening(), *(f"# {line}".rstrip() for line in facts(model)), "", *_constants(model)]
    kind = "words" if has_words(model) else "configs"
    lines += ["", "", *CHOOSE[kind].splitlines(), "", "", *RANK[kind].splitlines(), "", ""]
    lines += functions(model, _RANKING, _read, words=has_words(model))
    text = "\n".join(lines) + "\n"
    check_source(text)
    return text


def facts(model: Model) -> Iterator[str]:
    """Yield what people should know of a model before they use its code, line by line, as printable ASCII."""
    card = model.card
    yield f"Decision     {remark(card.decision)}"
    made = " ".join(filter(None, (f"by {remark(card.learner)}" if card.learner else "", remark(card.created))))
    yield f"Learned      {made or 'somewhere'}, from data {remark(card.fingerprint) or 'without a fingerprint'}"
    fence = ", ".join(f"{remark(name)} = {remark(str(value))}" for name, value in card.fence.items())
    yield f"Only for     {fence or 'any hardware'}"
    yield f"Scores       {', '.join(f'{remark(name)} {value:.4g}' for name, value in card.scores.items()) or 'none'}"
    default = model.choices[model.default] if model.default is not None else card.fallback
    if default:
        yield f"Default      {remark(str(default['choice'] if has_words(model) else dict(default)))}"
    for title, column in zip(["Features", *[""] * len(model.columns.problem)], model.columns.problem, strict=False):
        yield f"{title:12} {bounds(column)}"


def bounds(column: Input) -> str:
    """Return the name of an input and what is known of it: its bounds, or its words."""
    if isinstance(column, Word):
        return f"{remark(column.name)}: {remark(', '.join(column.words))}"
    return f"{remark(column.name)}: {column.low:.12g} to {column.high:.12g}"


def renamed(columns: Columns) -> Iterator[str]:
    """Yield a line for every input that goes by another name in the code, and one for times, if there are any."""
    for column, name in zip(columns.inputs, names_of(columns), strict=True):
        if column.name != name:
            yield f"{name} is {remark(column.name)}"
    if any(derived.about is not None for derived in columns.derived):
        yield "time_0, time_1, ... are the nanoseconds that the choices are expected to take"


def _opening() -> list[str]:
    # Names stay out of the first two lines: Python looks for the encoding of a file there.
    return [
        '"""A heuristic learned by tunewise: which choice is fastest for a problem. It imports nothing."""',
        "",
        "# Generated code: rather than edit it, measure more and train again.",
        "#",
    ]


def _constants(model: Model) -> Iterator[str]:
    yield from (f"# {line}" for line in renamed(model.columns))
    yield "FORMAT = 1"
    yield f"DECISION = {python(model.card.decision)}"
    yield f"HARDWARE = {python_dict(model.card.fence)}"
    yield from folded("FEATURES = ", [python(column.name) for column in model.columns.problem])
    yield f"FINGERPRINT = {python(model.card.fingerprint)}"
    if has_words(model):
        yield from folded("CHOICES = ", [python(choice["choice"]) for choice in model.choices])
    else:
        yield "CHOICES = ("
        yield from (f"    {python_dict(choice)},  # {number}" for number, choice in enumerate(model.choices))
        yield ")"
    if isinstance(model.body, Forest):
        yield from candidates(model)


def _read(column: Input) -> str:
    value = f"features[{python(column.name)}]"
    return value if isinstance(column, Word) else f"{value} * 1.0"
