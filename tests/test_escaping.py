"""Foreign text in warnings, errors, logs, answers and on the screen is shown, and never obeyed."""

import ast
import io
import json
import logging
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

import tunewise
import tunewise as tw
from tunewise import errors, eventlog
from tunewise.cli.app import app
from tunewise.cli.screen import Screen
from tunewise.decision import Failure, Proposal, Timing, Trial, Verdict
from tunewise.escaping import harmless, one_line
from tunewise.measure import Replay, Work
from tunewise.session import shelf
from tunewise.session.context import current_store
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import tune

HOSTILE = "a\x1b[31mred\x1b]0;title\x07\r\nWARNING all is well\x00\x9b2J\u202egnp.exe\u2028\u2066\ud800é✓"
WHOLE = HOSTILE.replace("\ud800", "")  # as it can be written to a file
OBEYED = set(HOSTILE) - {one for one in HOSTILE if one.isprintable()}
PACKAGE = Path(tunewise.__file__).parent
TREE = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]


def is_shown(text: str) -> bool:
    """Return whether a text quotes the hostile one so that nothing obeys it."""
    return "red" in text and not OBEYED & set(text)


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "tunewise")
    return caplog


def test_what_is_printable_stays() -> None:
    assert one_line("plain é ✓ \\n") == harmless("plain é ✓ \\n") == "plain é ✓ \\n"
    assert one_line(one_line(HOSTILE)) == one_line(HOSTILE)
    assert is_shown(one_line(HOSTILE))
    assert harmless("a\nb\x1b") == "a\nb\\x1b"


@pytest.mark.parametrize("kind", TREE)
def test_no_error_or_warning_of_ours_carries_it(kind: type[Exception]) -> None:
    told = str(kind(f"it says {HOSTILE}"))
    assert is_shown(told.replace("\n", "") if kind is errors.BuildError else told)


def test_a_compilers_lines_stay_lines() -> None:
    assert str(errors.BuildError("line 1\nline 2\x1b")) == "line 1\nline 2\\x1b"


def test_a_warning_is_one_line_whoever_catches_it() -> None:
    with pytest.warns(errors.StoreWarning) as told:
        warnings.warn(HOSTILE, errors.StoreWarning, stacklevel=1)
    assert is_shown(str(told[0].message))


def test_every_logger_of_ours_writes_it_out(heard: pytest.LogCaptureFixture) -> None:
    names = [name for name in logging.root.manager.loggerDict if name.startswith("tunewise.")]
    ours = [name for name in names if any(one is eventlog._written_out for one in logging.getLogger(name).filters)]
    assert len(ours) > 5
    for name in ours:
        heard.clear()
        logging.getLogger(name).warning("%s: %s", HOSTILE, ValueError(HOSTILE))
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            logging.getLogger(name).warning("it broke", exc_info=True)
        first, second = (logging.Formatter("%(message)s").format(record) for record in heard.records)
        assert is_shown(first)
        assert is_shown(second.replace("\n", ""))


def test_modules_get_their_loggers_in_one_place() -> None:
    """The other one only asks who hears a record."""
    calls = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "getLogger"
    }
    assert calls <= {"eventlog.py", "deploy/autotuner_telling.py"}


def test_an_error_that_cannot_be_told_breaks_no_program(
    heard: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    monkeypatch.setattr(logging, "raiseExceptions", False)
    log = eventlog.logger("tunewise.test")
    monkeypatch.setattr(log, "propagate", False)
    log.addHandler(handler := logging.StreamHandler(io.StringIO()))
    log.warning("%s", Broken())
    log.removeHandler(handler)


def test_events_and_their_records_carry_it_as_json(tmp_path: Path, heard: pytest.LogCaptureFixture) -> None:
    eventlog.put_in_force(tmp_path / "events", "info")
    eventlog.tell(eventlog.WARNING, "test", HOSTILE, fact=HOSTILE)
    eventlog.put_in_force(None, "info")
    (line,) = (tmp_path / "events").read_text().splitlines()
    assert json.loads(line)["fact"] == HOSTILE
    assert is_shown(line)
    assert is_shown(heard.records[0].getMessage())


def test_a_heuristics_name_and_its_error_are_written_out(heard: pytest.LogCaptureFixture) -> None:
    class Hostile:
        name = HOSTILE

    shelf.report(Hostile(), shelf.broke(ValueError(HOSTILE)))  # type: ignore[arg-type]
    assert is_shown(heard.records[-1].getMessage())


def decision(name: str = "named") -> tw.Decision:
    return tw.Decision(name, space=tw.Space({"tile": [8, 16]}), default={"tile": 8})


@pytest.mark.parametrize("ending", ["win", "tie", "failed"])
def test_an_answer_and_its_explanation_quote_a_row_in_one_line(ending: str) -> None:
    made = decision()
    about = made.subject(made.problem({"n": 1, "word": WHOLE}))
    challenger = {"tile": 16} if ending == "win" else {"tile": 8}
    row = Verdict(ending, {"tile": 8}, challenger, run=HOSTILE, source=HOSTILE, detail=HOSTILE)  # type: ignore[arg-type]
    current_store().conclude(about, row)
    features = dict(about.problem)
    answer, said = made.decide(features), str(made.explain(features))
    assert answer.rung == "memory"
    assert is_shown(answer.source + answer.reason + "red")
    assert is_shown(said.replace("\n  ", ""))


def test_a_config_that_fails_is_told_in_one_line() -> None:
    made = decision()
    trials = [Trial(config, Failure("runtime", HOSTILE)) for config in made.space]
    about = made.subject(made.problem({"n": 1}))
    work = Work(lambda config: lambda: None, (), {"tile": 8}, made.check)
    task = Task(made, about, work, hardware=made.hardware())
    with pytest.warns(errors.MeasureWarning) as told:
        tune(task, Plan(), current_store(), lambda _: Replay(trials))
    assert is_shown(str(told[0].message))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_command_line_shows_it(home: Path, more: list[str]) -> None:
    made = decision(f"x {WHOLE}")
    seed = Proposal(HOSTILE, "expert", 1, {"tile": 8}, "tried", HOSTILE)
    about = made.subject(made.problem({"n": WHOLE}))
    current_store().add(about, [Trial({"tile": WHOLE}, Failure("runtime", HOSTILE), HOSTILE, HOSTILE)])
    current_store().add(about, [Trial({"tile": 8}, Timing((1.0,)), HOSTILE, HOSTILE)])
    won = Verdict("win", {"tile": 16}, {"tile": 8}, source=HOSTILE, detail=HOSTILE, run=HOSTILE, proposals=(seed,))
    current_store().conclude(about, won)
    current_store().miss(made.subject(made.problem({"n": "another " + WHOLE})))
    tw.configure()
    named = [["trials", made.name], ["best", made.name], ["heuristics", made.name, "--runs"]]
    for verb in (*named, ["misses"], ["store", "info"], ["doctor"], ["pin"]):
        told = CliRunner().invoke(app, ["--home", str(home), *verb, *more])
        assert told.exit_code == 0 or verb == ["doctor"], told.output
        assert "red" in told.output or verb == ["doctor"]
        assert "\nWARNING all is well" not in told.output
        assert not (OBEYED & set(told.output)) - {"\n"}, verb
        if more:
            assert json.loads(told.stdout)


def test_json_on_the_screen_holds_half_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().json({"file": HOSTILE, "few": [1, 2.5, None]})
    told = capsys.readouterr().out
    assert is_shown(told.replace("\n", ""))
    assert json.loads(told) == {"file": HOSTILE, "few": [1, 2.5, None]}
