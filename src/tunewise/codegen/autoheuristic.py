"""A model as an artifact of PyTorch's AutoHeuristic: a class that its LearnedHeuristicController asks."""

import ast
import re
from collections.abc import Iterator

from tunewise.codegen.functions import candidates, functions, names_of
from tunewise.codegen.literals import python
from tunewise.codegen.naming import POSITIONAL, plain_word
from tunewise.codegen.python import facts, renamed
from tunewise.decision import Scalar
from tunewise.errors import InvalidModel
from tunewise.models import Forest, Input, Model, Word

_RANKING = '''def _ranking(context):
    """Return the numbers of choices, best first; empty outside what was measured."""'''

_CLASS = '''class {name}(LearnedHeuristicDecision):
    """Ranks the choices of a decision, fenced by the device it was learned on."""

    def check_precondition(self, metadata: AHMetadata, context: AHContext) -> bool:
        """Return whether this is the decision and the device that the heuristic is for."""
        return (
{conditions}
        )

    def get_confidence_threshold(self) -> float:
        """Return 0: where the heuristic is not sure, it does not answer at all."""
        return 0.0

    def get_name(self) -> str:
        """Return the name of the decision."""
        return {decision}

    def get_choice(self, idx: int) -> Choice | None:
        """Return a choice by its number."""
        return CHOICES[idx] if 0 <= idx < len(CHOICES) else None

    def get_best_choices(self, context: AHContext) -> list[tuple[float, int]] | None:
        """Return the choices, best first, or None where the fallback is as good a guess."""
        try:
            ranking = _ranking(context)
        except Exception:  # a feature is missing, or of another kind
            return None
        return [(1.0, number) for number in ranking] or None'''

_OURS = frozenset(
    """AHContext AHMetadata Choice LearnedHeuristicDecision CHOICES CANDIDATES self metadata context bool float int str
    list tuple len sorted idx ranking number Exception _ranking _guess guesses time total _ torch name shared_memory
    device_capa get_name get_value cuda is_available get_device_name get_device_properties multi_processor_count
    check_precondition get_confidence_threshold get_choice get_best_choices""".split()  # noqa: SIM905
)


def autoheuristic_source(model: Model) -> str:
    """Return the model as a module for torch/_inductor/autoheuristic/artifacts, in a file that begins with `_`.

    Its class, or an instance appended to `LearnedHeuristicController.existing_heuristics[name]`, answers `get_choice`
    and `get_top_k_choices`. Raises InvalidModel for an unsound model, for configs of several parameters, since a choice
    is a word there, and for a fence around facts that cannot be seen there.
    """
    model.check()
    name = "".join(part.capitalize() for part in plain_word(model.card.decision, "decision").split("_")) + "Heuristic"
    conditions = ["metadata.name == self.get_name()", *_fence(model)]
    text = "\n".join(_lines(model, name, conditions)) + "\n"
    _check(text, {name, *names_of(model.columns)})
    return text


def _lines(model: Model, name: str, conditions: list[str]) -> Iterator[str]:
    # Names stay out of the first two lines: Python looks for the encoding of a file there.
    yield '"""A heuristic learned by tunewise, for AutoHeuristic in PyTorch."""'
    yield ""
    yield "# Generated code: rather than edit it, measure more and train again."
    yield "#"
    yield from (f"# {line}".rstrip() for line in facts(model))
    yield from (f"# {line}" for line in renamed(model.columns))
    yield ""
    if any("torch." in condition for condition in conditions):
        yield "import torch"
    yield "from torch._inductor.autoheuristic.autoheuristic_utils import AHContext, AHMetadata, Choice"
    yield "from torch._inductor.autoheuristic.learnedheuristic_interface import LearnedHeuristicDecision"
    yield from ("", "CHOICES = (", *(f"    {python(word)}," for word in _words(model)), ")")
    if isinstance(model.body, Forest):
        yield from candidates(model)
    written = "\n".join(f"            {'and ' if place else ''}{text}" for place, text in enumerate(conditions))
    yield from ("", "", _CLASS.format(name=name, conditions=written, decision=python(model.card.decision)), "", "")
    yield from functions(model, _RANKING, _read, words=False)


def _words(model: Model) -> list[str]:
    names = {name for choice in model.choices for name in choice}
    if len(names) != 1 or not all(model.choices):
        raise InvalidModel(
            f"a choice of AutoHeuristic is a word, and those of {model.card.decision!r} have the parameters "
            f"{sorted(names)[:8]}; generate Python or C instead"
        )
    return [str(value) for choice in model.choices for value in choice.values()]


def _fence(model: Model) -> Iterator[str]:
    for fact, value in model.card.fence.items():
        condition = _condition(fact, value)
        if condition is None:
            raise InvalidModel(
                f"AutoHeuristic cannot see the fact {fact}={value!r} that the model is fenced by; train it "
                "with --no-fence for every device, or with a --fence that can be seen, such as hardware.kind=cuda"
            )
        yield condition


def _condition(fact: str, value: Scalar) -> str | None:
    match fact, value:
        case "hardware.shared_memory", int():
            return f"metadata.shared_memory == {python(value)}"
        case "hardware.capability", str() if re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", value):
            return f'str(metadata.device_capa) == "({", ".join(value.split("."))})"'
        case "hardware.kind", "cuda":
            return "torch.cuda.is_available()"
        case "hardware.name", str():
            return f"(torch.cuda.is_available() and torch.cuda.get_device_name() == {python(value)})"
        case "hardware.cores", int():
            return f"torch.cuda.get_device_properties(0).multi_processor_count == {python(value)}"
    return None


def _read(column: Input) -> str:
    value = f"context.get_value({python(column.name)})"
    return f"str({value})" if isinstance(column, Word) else f"{value} * 1.0"


def _check(text: str, names: set[str]) -> None:
    """Raise InvalidModel unless every identifier of the code is ours, or one that was given to a name."""
    for node in ast.walk(ast.parse(text)):
        word = _identifier(node)
        if word is not None and word not in _OURS and word not in names and not POSITIONAL.fullmatch(word):
            raise InvalidModel(f"the generated code speaks of {word!r}: a fault of ours")


def _identifier(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
            return word
        case ast.FunctionDef(name=word) | ast.ClassDef(name=word):
            return word
        case ast.Import(names=[ast.alias(name=word)]):
            return word
    return None
