"""The library in thirty lines: short indeed, right, and with all that a library with the switch promises."""

import ast
import subprocess
import sys
from pathlib import Path

import mylib_library
import numpy as np
from mylib_library import LIBRARY, mylib, signals

from limits import HANG_S
from tunewise import settings
from tunewise.testing.autotuner_contract import AutotunerContract


class TestMylib(AutotunerContract):
    module = mylib_library.__name__
    sizes = (64, 256, 1024, 4096)

    def test_the_contract_brings_an_empty_home_of_its_own(self, home: Path) -> None:
        assert settings.current().home != home
        assert not settings.current().home.exists()


def test_it_has_thirty_lines_of_code_at_most() -> None:
    lines = Path(mylib.__file__).read_text().splitlines()
    docstring = ast.parse("\n".join(lines)).body[0]
    assert isinstance(docstring.end_lineno, int)
    code = [line for line in lines[docstring.end_lineno :] if line.strip() and not line.strip().startswith("#")]
    assert len(code) <= 30


def test_every_way_is_the_moving_sum_and_its_gradient() -> None:
    x, w, g = signals(200)
    expected = np.convolve(x, w, "valid")
    for way in mylib.WAYS:
        assert np.allclose(mylib.moving_sum(x, w, choice=way), expected)
        of_x, of_w = mylib.moving_sum_backward(g, x, w, choice=way)
        assert np.allclose(of_x, np.convolve(g, w[::-1]))
        assert np.allclose([of_w @ w, of_x @ x], [g @ expected] * 2)


def test_users_find_the_switch_where_they_expect_it() -> None:
    assert mylib.use_autotuner == LIBRARY.tuner.use_autotuner
    assert mylib.disable_autotuner == LIBRARY.tuner.disable_autotuner
    assert mylib.is_autotuner_enabled() is False


def test_its_user_sees_what_the_library_chose() -> None:
    script = Path(mylib.__file__).with_name("use.py")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=HANG_S)
    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["before", "first", "second", "off"]
    assert lines[0].endswith("by direct")
    assert len({line.rsplit(" ", 1)[1] for line in lines[1:]}) == 1
