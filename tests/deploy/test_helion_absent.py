"""Without Helion the adapter costs nothing, and says what is missing when it is asked for."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tunewise.deploy import helion
from tunewise.errors import MissingPart


def test_importing_the_adapter_imports_no_framework() -> None:
    code = "import sys, tunewise.deploy.helion; print(sorted({'helion', 'torch', 'jax', 'triton'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.skipif(find_spec("helion") is not None, reason="Helion is installed")
def test_installing_without_helion_says_what_to_install() -> None:
    for work in (helion.install, helion.uninstall, helion.listen):
        with pytest.raises(MissingPart, match=r"pip install 'tunewise\[helion\]'"):
            work()
