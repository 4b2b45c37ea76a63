"""What Inductor's choices are called in logs: words unique in one list that mean the same in every process."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# What a template is told about the problem and the device: no choice, and another one for another problem.
_GIVEN = frozenset(
    ("EVEN_K", "ALLOW_TF32", "ACC_TYPE", "USE_FAST_ACCUM", "A_ROW_MAJOR", "B_ROW_MAJOR", "NUM_SMS", "TMA_SIZE")
)
_COUNTER = re.compile(r"_\d+$")  # at the end of a name: how many kernels this process had made before


def words_of(choices: Sequence[Any]) -> list[str]:
    """Return one word for each choice, no two equal; the same choice has the same word for every problem.

    A library's kernel is `extern_` and its name, as in logs of torch's own. A template's kernel is the template and
    what can be tuned of it; what Inductor derives from the sizes is added only where two would be called the same.
    """
    brief = [_word(choice) for choice in choices]
    often = Counter(brief)
    words = [word if often[word] == 1 else _detailed(word, one) for word, one in zip(brief, choices, strict=True)]
    return list(_numbered(words))


def _word(choice: Any) -> str:
    library, template = getattr(choice, "choice", None), getattr(choice, "template", None)
    if library is not None:
        return f"extern_{library.name}"
    if template is not None and hasattr(template, "register_blocking"):
        return f"cpp::{template.name} {_blocking(template.register_blocking)}"
    params = _params(choice)
    if params is not None:
        return _settings(choice.annotations["ktc"].template.uid, params, _GIVEN)
    way = getattr(choice, "decomposition", None)
    if way is not None:
        return _settings(f"subgraph_{way.__name__}", getattr(choice, "decomposition_kwargs", {}))
    return _COUNTER.sub("", str(choice.name))


def _detailed(word: str, choice: Any) -> str:
    params, template = _params(choice), getattr(choice, "template", None)
    if params is not None:
        return _settings(word, {name: value for name, value in params.items() if name in _GIVEN})
    if template is not None and hasattr(template, "cache_blocking"):
        return f"{word} cache={_blocking(template.cache_blocking(template.num_threads))}"
    given = getattr(choice, "kwargs", None)
    return _settings(word, given) if isinstance(given, Mapping) else word


def _params(choice: Any) -> dict[str, Any] | None:
    """Return how a Triton template is filled in, or None for any other choice."""
    made_by = getattr(choice, "annotations", {}).get("ktc")
    params = getattr(made_by, "params", None)
    return None if params is None else dict(params.to_kwargs())


def _settings(word: str, params: Mapping[str, Any], without: frozenset[str] = frozenset()) -> str:
    said = {name: value for name, value in sorted(params.items()) if name not in without and value is not None}
    return " ".join([word, *(f"{name}={value}" for name, value in said.items())])


def _blocking(blocking: Any) -> str:
    return f"{blocking.block_m}x{blocking.block_n}x{blocking.block_k}"


def _numbered(words: Iterable[str]) -> Iterable[str]:
    seen: Counter[str] = Counter()
    for word in words:
        seen[word] += 1
        yield word if seen[word] == 1 else f"{word} #{seen[word]}"
