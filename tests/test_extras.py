"""The optional dependencies: each platform is asked only for packages that have a file for it."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
POCL, NVIDIA = "pocl-binary-distribution", "nvidia-matmul-heuristics"
LINUX, ARM_LINUX = ("linux", "x86_64"), ("linux", "aarch64")
WINDOWS, MAC, ARM_MAC = ("win32", "AMD64"), ("darwin", "x86_64"), ("darwin", "arm64")


def packages(extra: str, system: str, machine: str) -> set[str]:
    """Return what an extra asks for there, through the extras that it is made of."""
    here = {"sys_platform": system, "platform_machine": machine}
    wanted = set()
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.marker and not requirement.marker.evaluate(here):
            continue
        if requirement.name == "tunewise":
            wanted |= set().union(*(packages(part, system, machine) for part in requirement.extras))
        else:
            wanted.add(requirement.name)
    return wanted


@pytest.mark.parametrize("extra", ["opencl", "all", "dev"])
@pytest.mark.parametrize("platform", [LINUX, ARM_LINUX, WINDOWS, MAC, ARM_MAC], ids="-".join)
def test_the_pocl_of_pip_is_asked_for_where_it_has_a_file(extra: str, platform: tuple[str, str]) -> None:
    wanted = packages(extra, *platform)
    assert "pyopencl" in wanted
    assert (POCL in wanted) == (platform == LINUX)


@pytest.mark.parametrize("platform", [LINUX, ARM_LINUX, WINDOWS, MAC, ARM_MAC], ids="-".join)
def test_nvidias_heuristics_are_asked_for_on_linux_only(platform: tuple[str, str]) -> None:
    assert (NVIDIA in packages("all", *platform)) == (platform[0] == "linux")
