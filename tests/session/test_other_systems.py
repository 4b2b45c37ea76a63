"""Windows and macOS, imitated in a process of its own: answering works, and measuring says what it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from limits import HANG_S

pytest.importorskip("mypy", reason="its type stubs say what other systems have: pip install mypy")
SYSTEMS = ["win32", "darwin"]
IMITATED = """
import sys
import other_system
other_system.imitate(sys.argv[1])
"""
DECLARED = """
import sys
import warnings
import tunewise as tw

warnings.simplefilter("error")
sized = tw.Decision(
    "sized",
    space=tw.Space({"tile": [1, 2, 4]}),
    default={"tile": 2},
    features=lambda n: {"n": n},
    inputs=lambda problem, seed: (problem["n"],),
    policy=tw.Policy(isolation=sys.argv[2] if len(sys.argv) == 3 else "worker", clock="wall", min_sample_s=1e-6),
    check=tw.NO_CHECK,
)


@sized.implementation
def work(n, *, tile):
    return sum(range(1000 if tile == 4 else 4000))
"""


def run(system: str, program: str, isolation: str = "worker", code: int = 0) -> str:
    """Run a program where everything looks as on another system; return what it prints."""
    here = Path(__file__).parent
    command = [sys.executable, "-c", IMITATED + program, system, isolation]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_public_name_and_every_verb_can_be_imported(system: str) -> None:
    program = """
for name in tw.__all__:
    getattr(tw, name)
from click import Context
from tunewise.cli.app import app
for name in app.list_commands(Context(app)):
    app.get_command(Context(app), name)
print("all")
"""
    assert run(system, DECLARED + program) == "all\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_call_answers_with_the_default_and_says_why(system: str) -> None:
    program = 'print(work(3), work.decide(3).config["tile"], work.explain(3).answer.rung)'
    assert run(system, DECLARED + program).split()[1:] == ["2", "default"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_home_of_the_user_is_found(system: str, tmp_path: Path) -> None:
    home = {"win32": "USERPROFILE", "darwin": "HOME"}[system]
    program = f"""
from tunewise import settings
print(settings.load({{"{home}": r"{tmp_path}"}}).home)
print(settings.load({{}}).home.is_absolute())
"""
    assert run(system, DECLARED + program).splitlines() == [str(tmp_path / ".cache" / "tunewise"), "True"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_tune_says_in_one_sentence_what_measuring_needs(system: str) -> None:
    program = """
try:
    work.tune(3)
except tw.TunewiseError as error:
    print(type(error).__name__, error)
print(dict(work.decide(3).config))
"""
    first, answer = run(system, DECLARED + program).splitlines()
    assert first.startswith(
        f"MissingPart measuring in worker processes needs Linux 5.3 or newer, and this is {system};"
    )
    assert answer == "{'tile': 2}"


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("background", [False, True])
def test_calls_in_a_mode_that_measures_answer_and_warn_once(system: str, background: bool) -> None:
    program = f"""
with warnings.catch_warnings(record=True) as told, tw.mode("tune", background={background}):
    warnings.simplefilter("always")
    print([work.decide(n).config["tile"] for n in (1, 2, 3)])
print(len(told), told[0].category.__name__, told[0].message)
"""
    answers, warned = run(system, DECLARED + program).splitlines()
    assert answers == "[2, 2, 2]"
    assert warned.startswith("1 MeasureWarning nothing is tuned: measuring in worker processes needs Linux")


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_measured_in_the_process_is_remembered_on_disk_by_the_next(system: str) -> None:
    tune = DECLARED + "print(dict(work.tune(3, budget=3).answer.config))"
    ask = DECLARED + "print(dict(work.decide(3).config), work.decide(3).rung)"
    won = run(system, tune, isolation="none")
    assert run(system, ask) == won.strip() + " memory\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_pins_models_and_generated_code_answer(system: str, tmp_path: Path) -> None:
    program = f"""
import importlib.util
from pathlib import Path
from tunewise import models
from tunewise.codegen import generate
from tunewise.formats import pins
from tunewise.models import Card, Columns, Leaf, Model, Number, Tree

place = Path(r"{tmp_path}")
model = Model(
    card=Card(decision="sized"),
    choices=({{"tile": 4}}, {{"tile": 2}}),
    columns=Columns((Number("n", 1, 1000),)),
    body=Tree((Leaf((0, 1), support=5),)),
)
models.save(model, place / "sized.json")
tw.load_heuristic(place / "sized.json")
print(work.decide(3).rung, work.decide(3).config["tile"])
(place / "chosen.py").write_text(generate(models.load(place / "sized.json"), "python"))
spec = importlib.util.spec_from_file_location("chosen", place / "chosen.py")
chosen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chosen)
print(chosen.choose({{"n": 3}}))
(place / "pins.json").write_bytes(pins.encode([pins.PinnedAnswer("sized", {{"n": 3}}, {{"tile": 1}})]))
tw.configure(pins=[place / "pins.json"])
print(work.decide(3).rung, work.decide(3).config["tile"])
"""
    assert run(system, DECLARED + program).splitlines() == ["learned 4", "{'tile': 4}", "pin 1"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_command_line_answers_and_says_what_tuning_needs(system: str, tmp_path: Path) -> None:
    (tmp_path / "sized.py").write_text(DECLARED)
    program = f"""
import runpy
sys.stderr = sys.stdout
for verb in ("explain", "tune"):
    sys.argv = ["tunewise", verb, r"{tmp_path}/sized.py:sized", "--problem", "n=3"]
    try:
        runpy.run_module("tunewise", run_name="__main__")
    except SystemExit as ended:
        print("exit code", ended.code)
"""
    explained, _, tuned = run(system, program).partition("exit code 0")
    assert "default" in explained
    assert "measuring in worker processes needs Linux" in tuned
    assert tuned.endswith("exit code 1\n")
    assert "Traceback" not in tuned


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_fleet_says_in_one_sentence_what_it_needs(system: str, tmp_path: Path) -> None:
    (tmp_path / "sized.py").write_text(DECLARED)
    plan = f'kind = "tune"\n[[work]]\ntarget = "{tmp_path / "sized.py"}:sized"\ngrid = {{n = [3]}}\n'
    (tmp_path / "plan.toml").write_text(plan)
    program = f"""
import runpy
sys.stderr = sys.stdout
sys.argv = ["tunewise", "fleet", "run", r"{tmp_path / "plan.toml"}"]
runpy.run_module("tunewise", run_name="__main__")
"""
    assert f"error: a fleet needs Linux 5.3 or newer, and this is {system}" in run(system, program, code=1)
