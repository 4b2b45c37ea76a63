"""Texts of templates are compiled once while we steer, and as ever where we do not."""

from typing import Any

import pytest

from tunewise.deploy.inductor import rendering
from tunewise.deploy.inductor.steering import Steering, steered

common: Any = pytest.importorskip("torch._inductor.codegen.common", reason="torch is not installed")


def test_a_text_is_compiled_once_while_steered_and_each_time_without_us() -> None:
    rendering.install()
    rendering.install()
    make = common.KernelTemplate._template_from_string
    assert make("{{ x }}") is not make("{{ x }}")
    with steered(Steering()):
        kept = make("{{ x }} rows")
        assert make("{{ x }} rows") is kept
    assert kept.render(x=3) == "3 rows"
