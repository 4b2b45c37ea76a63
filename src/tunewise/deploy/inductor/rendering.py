"""Writing C++ code faster: Inductor compiles the same few texts of templates again for every candidate.

For a graph of a few products that is much of Inductor's own time, and a compiled text depends on nothing else.
"""

import functools
from collections.abc import Callable
from typing import Any

from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.steering import active

_TEMPLATES = 256  # Inductor's GEMM templates are a dozen texts


def install() -> None:
    """Let compiled texts be kept while a steering is active; harmless to call again, and where torch has none of it."""
    base = torchside.need("torch._inductor.codegen.common", "KernelTemplate")
    of_text = getattr(base, "_template_from_string", None)
    if of_text is not None and not getattr(of_text, "_is_tunewise", False):
        base._template_from_string = staticmethod(_keeping(of_text))


def _keeping(of_text: Callable[[str], Any]) -> Callable[[str], Any]:
    kept = functools.lru_cache(_TEMPLATES)(of_text)

    @functools.wraps(of_text)
    def template(source: str) -> Any:
        return of_text(source) if active() is None else kept(source)

    template._is_tunewise = True  # type: ignore[attr-defined]
    return template
