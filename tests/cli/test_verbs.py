"""Every verb on a tiny decision, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import tunewise
from tunewise import workloads
from tunewise.cli.runs import EXAMPLES
from tunewise.session.recall import trials

Cli = Callable[..., Result]
Asked = Callable[..., Any]


def test_tune_remembers_and_a_second_run_measures_nothing(asked: Asked, toy: str) -> None:
    first = asked("tune", toy, "--problem", "n=2000")["tunings"][0]
    again = asked("tune", toy, "--problem", "n=2000")["tunings"][0]
    assert first["measured"] == 6
    assert not first["is_known"]
    assert again["measured"] == 0
    assert again["is_known"]
    assert again["config"] == first["config"]
    assert first["ending"] == "win"
    assert first["config"]["work"] == 1


def test_tune_again_measures_although_it_is_known(asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=2000", "--budget", 2)
    assert asked("tune", toy, "--problem", "n=2000", "--again")["tunings"][0]["measured"] > 0


def test_problems_come_from_options_and_files_alike(asked: Asked, toy: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("n\n300\n400\n")
    rows = asked("tune", toy, "--problem", "n=200", "--problems", tmp_path / "p.csv", "--budget", 1)["tunings"]
    assert [row["problem"]["n"] for row in rows] == [200, 300, 400]


def test_seed_configs_are_tried_first(asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=500", "--budget", 2, "--seed-config", "work=2,way=odd")
    found = [m.trial for m in trials("toy") if m.trial.source == "seed"]
    assert [dict(trial.config) for trial in found] == [{"work": 2, "way": "odd"}]


def test_a_seed_that_is_not_in_the_space_is_told_with_what_is_tried_instead(cli: Cli, toy: str) -> None:
    result = cli("tune", toy, "--problem", "n=500", "--budget", 2, "--seed-config", "work=3")
    assert "the seed work=3 is not in the space; work=" in result.stderr
    result = cli("tune", toy, "--problem", "n=600", "--budget", 2, "--seed-config", "work=2")
    assert "not in the space" not in result.stderr


def test_nothing_found_is_said_in_words_and_not_as_an_empty_table(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    for words in (("best", "toy", "--problem", "n=4"), ("trials", "toy", "--failed"), ("tune", toy, "--misses")):
        result = cli(*words)
        assert result.exit_code == 0
        assert result.stdout == ""
        assert result.stderr


def test_pruning_an_unknown_decision_says_so(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    result = cli("store", "prune", "--decision", "tpy", "--yes")
    assert result.exit_code == 0
    assert "did you mean 'toy'?" in result.stderr
    assert result.stdout == "0 trials and 0 verdicts removed\n"


def test_misses_are_listed_and_tuned(asked: Asked, cli: Cli, toy: str) -> None:
    from tunewise.cli.targets import find

    decision = find([toy])[0]
    for n in (700, 800, 800):
        decision.decide({"n": n})
    tunewise.refresh()
    missed = asked("misses", "toy")["misses"]
    assert [(miss["problem"], miss["count"]) for miss in missed] == [({"n": 800}, 2), ({"n": 700}, 1)]
    rows = asked("tune", toy, "--misses", "--budget", 2)["tunings"]
    assert [row["problem"]["n"] for row in rows] == [800, 700]
    assert asked("misses")["misses"] == []
    assert "no misses to tune" in cli("tune", toy, "--misses").stderr


def test_misses_of_built_in_decisions_need_no_target(asked: Asked, cli: Cli, toy: str) -> None:
    from tunewise.cli.targets import find

    for target, problem in ((toy, {"n": 5}), ("sort", {"n": 64, "dtype": "int64", "order": "random"})):
        find([target])[0].decide(problem)
    result = cli("tune", "--misses", "--budget", 2, "--json")
    assert [row["decision"] for row in json.loads(result.stdout)["tunings"]] == ["sort"]
    assert "1 miss of toy left: tunewise tune path/to/file.py:toy --misses" in result.stderr


def test_collect_measures_every_config_several_times(asked: Asked, toy: str) -> None:
    row = asked("collect", toy, "--problem", "n=300")["tunings"][0]
    samples: dict[str, int] = {}
    for trial in asked("trials", "toy", "--limit", 0)["trials"]:
        key = json.dumps(trial["config"])
        samples[key] = samples.get(key, 0) + len(trial["samples_s"])
    assert row["measured"] == 6
    assert len(samples) == 6
    assert min(samples.values()) >= 5


def test_collect_measures_what_tuning_left_out(asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 2)
    assert asked("collect", toy, "--problem", "n=300")["tunings"][0]["measured"] == 4
    assert asked("collect", toy, "--problem", "n=300")["tunings"][0]["measured"] == 0


def test_collect_passes_over_a_problem_whose_inputs_cannot_be_made(cli: Cli, asked: Asked, toy: str) -> None:
    file = Path(toy.removesuffix(":toy"))
    file.write_text(file.read_text().replace('(int(problem["n"]),)', '(int(problem["n"]) // (problem["n"] < 1000) ,)'))
    problems = ("--problem", "n=5000", "--problem", "n=300")
    result = cli("collect", toy, *problems)
    assert result.exit_code == 0, result.output
    assert "warning: toy: inputs fails for (n=5000) with ZeroDivisionError" in result.stderr
    assert "1 of 2 problems could not be set up" in result.stderr
    large, small = asked("collect", toy, *problems)["tunings"]
    assert (large["is_set_up"], large["ending"], small["is_set_up"], small["is_known"]) == (False, "failed", True, True)
    assert cli("collect", toy, "--problem", "n=5000").exit_code == 1


def test_best_shows_winners_that_match(asked: Asked, cli: Cli, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--problem", "n=400", "--budget", 2)
    assert [row["problem"] for row in asked("best", "toy")["winners"]] == [{"n": 300}, {"n": 400}]
    assert [row["problem"] for row in asked("best", "toy", "--problem", "n=400")["winners"]] == [{"n": 400}]
    assert "n=400" in cli("best", "toy").stdout


def test_best_shows_the_last_winners_and_how_many_there_are(asked: Asked, cli: Cli, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--problem", "n=400", "--budget", 1)
    said = asked("best", "toy", "--limit", 1)
    assert ([row["problem"] for row in said["winners"]], said["total"]) == ([{"n": 400}], 2)
    assert "2 winners, the last 1 shown; --limit 0 shows all" in cli("best", "toy", "--limit", 1).output
    assert "shows all" not in cli("best", "toy", "--limit", 0).output


def test_best_names_the_part_in_which_environments_differ(asked: Asked, cli: Cli, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    file = Path(toy.removesuffix(":toy"))
    file.write_text(file.read_text().replace('"toy",', '"toy", version="2",'))
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    assert len(asked("best", "toy")["winners"]) == 2
    assert cli("best", "toy").stdout.splitlines()[0].split()[-1] == "version"


def test_a_default_that_is_the_fastest_claims_no_pairs(asked: Asked, toy: str) -> None:
    row = asked("tune", toy, "--problem", "n=300", "--budget", 1)["tunings"][0]
    assert (row["ending"], row["pairs"], row["gain"]) == ("tie", 0, 1.0)


@pytest.mark.parametrize("verb", ["best", "trials"])
def test_an_unknown_decision_is_guessed(cli: Cli, asked: Asked, toy: str, verb: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    result = cli(verb, "tpy")
    assert result.exit_code == 1
    assert result.stderr == "error: nothing is remembered of 'tpy'; did you mean 'toy'?\n"


def test_an_unknown_feature_is_named(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    result = cli("best", "toy", "--problem", "m=300")
    assert result.exit_code == 1
    assert result.stderr == "error: toy was never asked about 'm'; its features are n\n"


def test_trials_can_be_limited_and_filtered(asked: Asked, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(
        "import tunewise as tw\n"
        "def broken(n): raise ValueError('never works')\n"
        "half = tw.choice('half', {'good': range, 'bad': broken}, default='good',\n"
        "    features=lambda n: {'n': n}, inputs=lambda problem, seed: (problem['n'],))\n"
    )
    asked("tune", f"{tmp_path / 'half.py'}:half", "--problem", "n=3")
    failed = asked("trials", "half", "--failed")["trials"]
    assert [(row["config"]["choice"], row["failure"]) for row in failed] == [("bad", "runtime")]
    assert "never works" in cli("trials", "half", "--failed").stdout
    limited = asked("trials", "half", "--limit", 1)
    assert len(limited["trials"]) == 1
    assert limited["total"] > 1


def test_explain_shows_every_rung(asked: Asked, cli: Cli, toy: str) -> None:
    before = asked("explain", toy, "--problem", "n=300")["explanations"][0]
    rungs = ["pin", "memory", "table", "promoted", "learned", "near", "default"]
    assert [step["rung"] for step in before["steps"]] == rungs
    asked("tune", toy, "--problem", "n=300", "--budget", 2)
    after = asked("explain", toy, "--problem", "n=300")["explanations"][0]
    assert after["answer"]["rung"] == "memory"
    assert "-> memory" in cli("explain", toy, "--problem", "n=300").stdout
    assert asked("misses")["misses"] == []


def test_export_import_and_merge_carry_everything(asked: Asked, toy: str, tmp_path: Path, home: Path) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 2)
    held = asked("store", "info")
    written = asked("store", "export", tmp_path / "facts.jsonl")["records"]
    assert written == held["trials"] + held["verdicts"]
    elsewhere = ("--home", tmp_path / "other")
    assert asked(*elsewhere, "store", "import", tmp_path / "facts.jsonl")["added"] == written
    assert asked(*elsewhere, "store", "import", tmp_path / "facts.jsonl")["known"] == written
    assert asked("--home", tmp_path / "third", "store", "merge", home)["added"] == written
    assert asked("--home", tmp_path / "third", "store", "info")["decisions"] == held["decisions"]


def test_home_is_given_back_after_a_command(asked: Asked, home: Path, tmp_path: Path) -> None:
    assert asked("--home", tmp_path / "other", "store", "info")["place"].startswith(str(tmp_path / "other"))
    assert asked("store", "info")["place"].startswith(str(home))


def test_prune_says_first_what_would_go(asked: Asked, cli: Cli, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 2)
    held = asked("store", "info")
    would = asked("store", "prune", "--decision", "toy")
    facts = {"trials": held["trials"], "verdicts": held["verdicts"], "misses": 0, "answers": 1}
    assert would == {**facts, "is_done": False}
    assert asked("store", "info")["trials"] == held["trials"]
    assert "would be removed; add --yes" in cli("store", "prune", "--decision", "toy").stdout
    assert asked("store", "prune", "--older-than", 1, "--yes")["trials"] == 0
    assert asked("store", "prune", "--elsewhere", "--yes")["trials"] == 0
    assert asked("store", "prune", "--decision", "toy", "--yes")["is_done"]
    assert asked("store", "info")["trials"] == 0


def test_prune_without_a_condition_is_refused(cli: Cli) -> None:
    result = cli("store", "prune", "--yes")
    assert result.exit_code == 1
    assert "prune needs a decision" in result.stderr


def test_import_of_something_else_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("hello\n")
    assert "holds no record" in cli("store", "import", tmp_path / "other.txt").stderr
    assert "there is no file" in cli("store", "import", tmp_path / "none.jsonl").stderr


def test_doctor_finds_everything_in_order(asked: Asked, home: Path) -> None:
    findings = {found["name"]: found for found in asked("doctor")["findings"]}
    assert findings["tunewise"]["value"] == tunewise.__version__
    assert str(home) in findings["home"]["value"]
    assert findings["TUNEWISE_HOME"]["value"] == str(home)
    assert findings["store"]["level"] == "ok"


def test_doctor_tells_of_a_missing_compiler(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    findings = {found["name"]: found for found in asked("doctor")["findings"]}
    assert findings["c-compiler"]["level"] == "warning"
    assert "no-such-compiler" in findings["c-compiler"]["value"]


def test_tables_have_no_colours_when_nobody_looks(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    for words in (("best", "toy"), ("explain", toy, "--problem", "n=300"), ("doctor",), ("trials", "toy")):
        assert "\x1b" not in cli(*words).output


def test_progress_goes_to_stderr_and_data_to_stdout(cli: Cli, toy: str) -> None:
    result = cli("tune", toy, "--problem", "n=300", "--json")
    assert json.loads(result.stdout)["tunings"]
    assert "toy n=300: tuning, at most 100 configs" in result.stderr


def test_version_is_told(cli: Cli) -> None:
    assert cli("--version").stdout == f"tunewise {tunewise.__version__}\n"


@pytest.mark.parametrize("name", workloads.names())
def test_the_example_given_for_a_built_in_decision_suits_it(
    cli: Cli, asked: Asked, name: str, request: pytest.FixtureRequest
) -> None:
    if name in workloads.names(backend="opencl"):
        request.getfixturevalue("pocl")
    told = cli("tune", name)
    assert told.exit_code == 1
    assert f"such as --problem {EXAMPLES[name]}," in told.stderr
    assert asked("explain", name, "--problem", EXAMPLES[name])["explanations"]


def test_without_a_problem_the_features_are_named(cli: Cli, toy: str) -> None:
    assert "such as --problem n=8," in cli("tune", toy).stderr
