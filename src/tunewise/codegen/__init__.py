"""Models as source text that imports nothing of ours: Python, C, DOT, and an artifact for AutoHeuristic."""

from collections.abc import Callable
from typing import Literal, get_args

from tunewise.codegen.autoheuristic import autoheuristic_source
from tunewise.codegen.c import c_source
from tunewise.codegen.dot import dot_source
from tunewise.codegen.python import python_source
from tunewise.errors import NotFound
from tunewise.models import Model

Language = Literal["python", "c", "autoheuristic", "dot"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_WRITERS: dict[str, Callable[[Model], str]] = {
    "python": python_source,
    "c": c_source,
    "autoheuristic": autoheuristic_source,
    "dot": dot_source,
}


def generate(model: Model, language: str = "python") -> str:
    """Return the model as source text of a language; raises InvalidModel, or NotFound for another language."""
    if language not in _WRITERS:
        raise NotFound(f"no code is generated in {language!r}; the languages are {', '.join(LANGUAGES)}")
    return _WRITERS[language](model)


__all__ = ["LANGUAGES", "Language", "autoheuristic_source", "c_source", "dot_source", "generate", "python_source"]
