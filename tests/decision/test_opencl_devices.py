"""Which OpenCL devices work: a kernel tells. A stand-in for pyopencl plays drivers that fail, crash and hang."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tunewise as tw
from tunewise.decision import opencl
from tunewise.decision.opencl import choose, devices
from tunewise.errors import MissingPart, NotFound

ROOT = Path(__file__).parents[2]
STANDIN = Path(__file__).with_name("opencl_standin.py")
DEBIAN = "apt-get install pocl-opencl-icd (if it is not found then: export OCL_ICD_VENDORS=/etc/OpenCL/vendors)"
UNKNOWN_CPU = "error: unknown target CPU 'generic'"
BROKEN = f"no OpenCL device can run a kernel: unknown-cpu (Stand-in): {UNKNOWN_CPU}; {opencl.CURE}"
ASKED = "the OpenCL drivers cannot be asked for their devices"
TUNE = ("tune", "opencl-softmax", "--problem", "rows=3,columns=40")
DEMO = ("demo", "--backend", "opencl")

Platforms = Callable[[str], None]


@pytest.fixture
def platforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platforms]:
    """Let processes that start from now on find the platforms that are named, and no others."""
    place = tmp_path / "standin"
    place.mkdir()
    (place / "pyopencl.py").write_text(STANDIN.read_text())
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "pyopencl", raising=False)
    opencl.survey.cache_clear()
    yield lambda fates: monkeypatch.setenv("STANDIN", fates)
    opencl.survey.cache_clear()
    sys.modules.pop("pyopencl", None)


def ran(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, check=False)


def test_a_platform_that_does_not_build_comes_behind_one_that_works(platforms: Platforms) -> None:
    platforms("unknown-cpu works")
    assert [(one.name, one.fault) for one in devices()] == [("works", ""), ("unknown-cpu", UNKNOWN_CPU)]
    assert choose().name == choose("opencl:0").name == "works"
    assert choose().place == (1, 0)  # as the drivers count


@pytest.mark.parametrize(
    ("fate", "fault"),
    [
        ("no-context", "OUT_OF_RESOURCES"),
        ("crashes", "crashed: Aborted"),
        ("wrong", "a kernel computes wrong numbers"),
    ],
)
def test_a_driver_that_crashes_or_fails_in_any_other_way_comes_behind_too(
    platforms: Platforms, fate: str, fault: str
) -> None:
    platforms(f"{fate} works")
    working, broken = devices()
    assert (working.name, broken.name) == ("works", fate)
    assert fault in broken.fault


def test_a_driver_that_hangs_is_given_up(platforms: Platforms, monkeypatch: pytest.MonkeyPatch) -> None:
    platforms("works")
    start = time.monotonic()
    devices()
    monkeypatch.setattr(opencl, "_PATIENCE_S", 2.0 + 5 * (time.monotonic() - start))  # as slow as the machine is
    opencl.survey.cache_clear()
    platforms("hangs works")
    working, broken = devices()
    assert (working.name, broken.name) == ("works", "hangs")
    assert broken.fault.startswith("no answer within ")


def test_a_platform_that_cannot_list_its_devices_leaves_the_others_alone(platforms: Platforms) -> None:
    platforms("unlisted works")
    assert [one.name for one in devices()] == ["works"]


def test_a_broken_device_that_is_asked_for_by_name_says_why_and_which_ones_work(platforms: Platforms) -> None:
    platforms("unknown-cpu works")
    told = "unknown-cpu .* cannot run a kernel .error: unknown target CPU 'generic'.; these can: 0: works"
    with pytest.raises(MissingPart, match=told):
        choose("opencl:unknown")
    tw.configure(opencl_device="1")
    with pytest.raises(MissingPart, match=told):
        choose()
    with pytest.raises(NotFound, match=r"there are 0: works \(Stand-in\), 1: unknown-cpu"):
        choose("opencl:2")


def test_where_nothing_works_the_distributions_driver_is_named_once_and_for_all(platforms: Platforms) -> None:
    platforms("unknown-cpu")
    assert DEBIAN in BROKEN
    for _ in range(2):
        with pytest.raises(MissingPart) as caught:
            devices()
        assert str(caught.value) == BROKEN
        platforms("works")  # not asked again in this process


@pytest.mark.parametrize(
    ("fates", "trouble"),
    [
        ("", "OpenCL finds no device"),
        ("no-list", f"{ASKED} (crashed: Aborted)"),
        ("unlisted", f"{ASKED} (pyopencl.Error: clGetDeviceIDs failed: OUT_OF_HOST_MEMORY)"),
    ],
)
def test_without_any_device_the_distributions_driver_is_named(platforms: Platforms, fates: str, trouble: str) -> None:
    platforms(fates)
    with pytest.raises(MissingPart) as caught:
        choose()
    assert str(caught.value) == f"{trouble}; {opencl.CURE}"


def test_without_pyopencl_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(MissingPart, match=r"pip install 'tunewise\[opencl\]'"):
        choose()


@pytest.mark.parametrize("words", [TUNE, DEMO])
def test_verbs_say_what_to_install_and_end_with_1(platforms: Platforms, words: tuple[str, ...]) -> None:
    pytest.importorskip("numpy")
    platforms("unknown-cpu")
    result = ran("tunewise", *words)
    assert (result.returncode, result.stderr) == (1, f"error: {BROKEN}\n")


def test_doctor_tells_which_devices_work_and_what_to_install_without_any(platforms: Platforms) -> None:
    platforms("unknown-cpu works")
    assert doctors_finding() == (
        "ok",
        f"works (Stand-in), driver 1; unknown-cpu (Stand-in) cannot run a kernel ({UNKNOWN_CPU})",
    )
    platforms("unknown-cpu")
    assert doctors_finding() == ("warning", BROKEN)


def doctors_finding() -> tuple[str, str]:
    told = json.loads(ran("tunewise", "doctor", "--quick", "--json").stdout)
    (finding,) = [one for one in told["findings"] if one["name"] == "opencl"]
    return finding["level"], finding["value"]


def test_tests_that_need_a_device_are_skipped_with_the_same_words(platforms: Platforms) -> None:
    platforms("unknown-cpu")
    file = "tests/workloads/test_opencl_kernels.py"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", file],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert BROKEN in result.stdout
    assert "passed" not in result.stdout.splitlines()[-1]
