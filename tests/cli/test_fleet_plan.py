"""Plan files of a fleet: what they become, and the sentence that says what is wrong with them."""

import json
import tomllib
from types import SimpleNamespace

import pytest

from tunewise.cli.fleet import Lines
from tunewise.cli.fleet_new import _toml
from tunewise.cli.fleet_plan import read_plan
from tunewise.errors import TunewiseError

GOOD = 'kind = "tune"\nbudget = 4\n[[work]]\ntarget = "toy.py:toy"\n'


@pytest.fixture
def made(tmp_path, toy):
    def make(text, name="plan.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_targets_and_problem_files_are_looked_for_beside_the_plan(made, tmp_path, monkeypatch):
    (tmp_path / "shapes.csv").write_text("n\n10\n20\n")
    plan = made(GOOD + 'problems = "shapes.csv"\n')
    monkeypatch.chdir("/")
    (work,) = read_plan(plan).work
    assert work.target == f"{tmp_path}/toy.py:toy"
    assert work.problems == ({"n": 10}, {"n": 20})


def test_grid_and_problems_add_up_and_each_problem_counts_once(made):
    (work,) = read_plan(made(GOOD + "problems = [{n = 5}, {n = 1}]\ngrid = {n = [1, 2]}\n")).work
    assert [problem["n"] for problem in work.problems] == [5, 1, 2]


def test_json_is_as_good_as_toml(made):
    said = {"kind": "tune", "budget": 4, "work": [{"target": "toy.py:toy", "problems": [{"n": 7}]}]}
    assert read_plan(made(json.dumps(said))).id == read_plan(made(GOOD + "problems = [{n = 7}]\n")).id


def test_table_to_collect_knows_its_size(made):
    plan = read_plan(made('kind = "collect"\n[[work]]\ntarget = "toy.py:toy"\nproblems = [{n = 5}]\n'))
    assert plan.work[0].size == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind = 'tun'\n[[work]]\ntarget='gemm'", "did you mean 'tune'?"),
        ("", "kind = None is no kind of plan"),
        ("kind = 'tune'\nbudgte = 3", "no key 'budgte'; did you mean 'budget'?"),
        ("kind = 'tune'", "[[work]]"),
        ("kind = 'tune'\nwork = []", "[[work]]"),
        ("kind = 'tune'\nwork = [3]", "write [[work]]"),
        ("kind = 'tune'\nbudget = 0\n[[work]]", "budget = 0"),
        ("kind = 'tune'\nbudget = true\n[[work]]", "budget = True"),
        ("kind = 'tune'\ndevices = 1000000\n[[work]]", "devices = 1000000"),
        ("kind = 'tune'\n[[work]]\nproblems = [{n = 1}]", "either target"),
        ("kind = 'tune'\n[[work]]\ntraget = 'gemm'", "did you mean 'target'?"),
        ("kind = 'tune'\n[[work]]\ntarget = 'gem'", "did you mean 'gemm'?"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:tox'\nproblems = [{n = 1}]", "toy.py:toy"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'", "names no problems"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'\nproblems = [{m = 1}]", "does not know m"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'\nproblems = 'none.csv'", "none.csv"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'\nproblems = 3", "problems = 3"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'\ngrid = {n = 3}", "table of lists"),
        ("kind = 'tune'\n[[work]]\ntarget = 'toy.py:toy'\npause_s = 1", "pause_s is for a replay"),
        ("kind = 'tune'\n[[work]]\nreplay = 'nothing.json'", "nothing.json"),
        ("kind = 'tune'\n[[work]]\nreplay = 'x.json'\npause_s = -1", "pause_s = -1"),
        ("kind = 'verify'\n[[work]]\ntarget = 'toy.py:toy'", "nothing to verify"),
        ("kind = ", "neither TOML nor JSON"),
        ("[" * 5000, "neither TOML nor JSON"),
    ],
)
def test_bad_plan_is_refused_with_a_sentence_that_names_the_file(made, text, said):
    path = made(text)
    with pytest.raises(TunewiseError) as refused:
        read_plan(path)
    assert said in str(refused.value)
    assert "plan.toml" in str(refused.value)


def test_plan_that_does_not_exist(tmp_path):
    with pytest.raises(TunewiseError, match="there is no plan"):
        read_plan(tmp_path / "none.toml")


def test_plan_written_by_the_command_is_read_back(cli, tmp_path, toy):
    out = tmp_path / "new.toml"
    result = cli("fleet", "plan", toy, "--problem", "n=10", "--grid", "n=20:30", "--kind", "collect", "--out", out)
    assert result.exit_code == 0, result.output
    plan = read_plan(out)
    assert (plan.kind, plan.budget, [row["n"] for row in plan.work[0].problems]) == ("collect", 1000, [10, 20, 30])


def test_check_counts_units_and_what_is_known(asked, toy, made):
    plan = made(GOOD + "problems = [{n = 50}, {n = 60}]\n")
    assert asked("tune", toy, "--problem", "n=50")["tunings"]
    told = asked("fleet", "check", plan, "--address", "127.0.0.1:1")
    assert (told["units"], told["nodes"], told["work"][0]["known"], told["work"][0]["evaluations"]) == (2, None, 1, 4)


def test_status_tells_of_no_plan(cli):
    result = cli("fleet", "status")
    assert result.exit_code == 0
    assert "no plan" in result.output


def test_local_nodes_and_an_address_exclude_each_other(cli, made):
    result = cli("fleet", "run", made(GOOD), "--local-nodes", "2", "--address", "host:1")
    assert result.exit_code == 2


def test_remark_about_a_problem_with_line_ends_stays_one_line():
    said = []
    Lines(SimpleNamespace(say=said.append)).hear({"say": "failed: toy word=a\nb\x1b[31m"})
    assert said == ["failed: toy word=a\\nb\\x1b[31m"]


def test_words_of_a_plan_may_hold_any_character():
    problem = {"word": "a\x7f\x1b\n\"'\\ \u00e9\U0001f600"}
    text = _toml(["toy.py:toy"], [problem], "tune", 4)
    assert tomllib.loads(text)["work"][0]["problems"] == [problem]
