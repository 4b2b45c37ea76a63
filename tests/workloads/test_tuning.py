import json
import os
import subprocess
import sys

import pytest

from limits import HANG_S
from tunewise.workloads import names

PROBLEMS = {
    "gemm": {"m": 9, "n": 20, "k": 30},
    "conv2d": {"h": 12, "w": 40, "fh": 3, "fw": 3},
    "softmax": {"rows": 4, "columns": 50},
    "convolve1d": {"n": 300, "k": 40},
    "isin": {"n": 50, "m": 20, "span": 1000},
    "sort": {"n": 1000, "dtype": "int16", "order": "random"},
    "opencl-gemm": {"m": 9, "n": 20, "k": 30},
    "opencl-conv2d": {"h": 12, "w": 40, "fh": 3, "fw": 3},
    "opencl-softmax": {"rows": 4, "columns": 50},
}
TUNE = """
import json, sys
from tunewise.workloads import find
decision, problem = find(sys.argv[1]), json.loads(sys.argv[2])
tuning = decision.tune(problem, budget=3)
print(json.dumps([tuning.verdict.ending, tuning.answer.rung, dict(tuning.answer.config)]))
"""
ASK = """
import json, sys
from tunewise.workloads import find
answer = find(sys.argv[1]).decide(json.loads(sys.argv[2]))
print(json.dumps([answer.rung, dict(answer.config)]))
"""


@pytest.mark.parametrize("name", names())
def test_another_process_remembers_what_one_tuned(name, tmp_path, request):
    if name.startswith("opencl"):
        request.getfixturevalue("pocl")

    def run(code):
        command = [sys.executable, "-c", code, name, json.dumps(PROBLEMS[name])]
        environment = {**os.environ, "TUNEWISE_HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    ending, rung, config = run(TUNE)
    assert ending in ("win", "tie")
    assert rung == "memory"
    assert run(ASK) == ["memory", config]
