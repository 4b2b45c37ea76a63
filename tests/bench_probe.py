"""Runs scripts in this process, one after the other, and prints as JSON what each of them said, changed and started."""

import json
import os
import runpy
import sys
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any


def surroundings() -> dict[str, Any]:
    """Return what a script could change besides the modules that are loaded."""
    children = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "files": sorted(str(path) for path in Path.cwd().rglob("*")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "children": " ".join(children).split(),
    }


def ran(path: str, words: list[str], name: str) -> dict[str, Any]:
    """Run a script as a module of some name and return how it ended: its exit code, its output and what it changed."""
    out, err, code, before = StringIO(), StringIO(), 0, surroundings()
    sys.argv = [path, *words]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(path, run_name=name)
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except Exception:
            traceback.print_exc()
            code = 1
    after = surroundings()
    changed = {key: [before[key], after[key]] for key in before if before[key] != after[key]}
    return {"code": code, "out": out.getvalue(), "err": err.getvalue(), "changed": changed}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    # A name that stands for None is a module that cannot be imported.
    sys.modules.update(dict.fromkeys(asked["missing"]))
    json.dump([ran(*one) for one in asked["scripts"]], sys.stdout)
