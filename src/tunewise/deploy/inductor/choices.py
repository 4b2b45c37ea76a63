"""Inductor's own class of choices, with our answers in it and our identity in its cache key."""

import functools
from typing import Any
from uuid import uuid4

from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.gpu_choices import finalized
from tunewise.deploy.inductor.gpu_problems import decisions_here
from tunewise.deploy.inductor.problems import OPS, decision_for
from tunewise.deploy.inductor.steering import Steering, guarded
from tunewise.session import Decision

_more: dict[str, Decision] = {}  # decisions of others that compilations depend on, such as custom operations


def watch(decision: Decision) -> None:
    """Make compile caches depend on what answers a decision."""
    _more[decision.name] = decision


def decisions() -> dict[str, Decision]:
    """Return the decisions that a compilation may ask, by name."""
    own = [decision_for(op) for op in OPS]
    return {**{decision.name: decision for decision in own}, **decisions_here(), **_more}


@functools.cache
def choices_class() -> Any:
    """Return our subclass of Inductor's class of choices; it is made when torch is there."""
    base = torchside.need("torch._inductor.choices", "InductorChoices")

    class Steered(base):  # type: ignore[misc, valid-type]
        def __init__(self, steering: Steering) -> None:
            super().__init__()
            self.steering = steering
            self._identity: str | None = None

        def uuid(self) -> str:
            """Return what the caches of compiled graphs know us by, the same for one compilation from start to end."""
            if self._identity is None:
                # Whoever cannot tell what steers must never hit what somebody else has compiled.
                self._identity = guarded(
                    "a graph",
                    lambda: f"tunewise:{self.steering.identity(decisions())}",
                    lambda: f"tunewise:{uuid4().hex}",
                )
            return self._identity

        def _finalize_template_configs(
            self, template_choices: Any, kernel_inputs: Any, templates: Any, op_name: str, *args: Any, **kwargs: Any
        ) -> Any:
            return finalized(self.steering, template_choices, kernel_inputs, templates, op_name)

    return Steered
