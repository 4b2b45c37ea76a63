import subprocess
import sys

import pytest

from limits import HANG_S
from tunewise import errors
from tunewise.workloads import find, names


def test_every_name_is_found_and_is_its_decisions_name():
    assert [find(name).name for name in names()] == list(names())


def test_c_kernels_opencl_kernels_and_library_choices_are_told_apart():
    assert names(backend="c") == ("gemm", "conv2d", "softmax")
    assert names(backend="opencl") == ("opencl-gemm", "opencl-conv2d", "opencl-softmax")
    assert set(names()) == {*names(backend="c"), *names(backend="opencl"), *names(backend="python")}
    assert [find(name).backend for name in names()] == ["c"] * 3 + ["python"] * 3 + ["opencl"] * 3


def test_unknown_name_suggests_a_near_one():
    with pytest.raises(errors.NotFound, match="did you mean 'gemm'"):
        find("gem")
    with pytest.raises(errors.NotFound, match="there are gemm, conv2d"):
        find("zzz")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S)


def test_listing_imports_no_numpy():
    done = run("import sys, tunewise.workloads as w; w.names(); print('numpy' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(("name", "extra"), [("gemm", "tune"), ("opencl-gemm", "opencl")])
def test_missing_numpy_is_one_clear_sentence(name, extra):
    done = run(f"import sys; sys.modules['numpy'] = None; from tunewise.workloads import find; find({name!r})")
    assert f"MissingPart: the built-in decision {name!r} needs numpy: pip install 'tunewise[{extra}]'" in done.stderr


def test_declaring_the_kernels_compiles_nothing(tmp_path):
    code = (
        f"import os; os.environ.update(PATH={str(tmp_path)!r}, CC='none'); from tunewise.workloads import find, names\n"
    )
    done = run(code + "print([find(name).space.count() > 1 for name in names()])")
    assert (done.stdout, done.stderr) == (f"{[True] * len(names())}\n", "")
