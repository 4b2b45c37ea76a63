"""The line about a call that takes its time, and the log beside it."""

import io
import logging
import sys
import threading

import pytest

from limits import HANG_S
from tunewise.decision import Environment, Problem, Subject, Timing
from tunewise.deploy.autotuner_line import Line
from tunewise.deploy.autotuner_telling import Telling, show_log
from tunewise.session import events

SUBJECT = Subject("lib.run", Problem({"kind": "a long word for a narrow place", "n": 4096}), (), Environment(()))


@pytest.fixture
def log() -> logging.Logger:
    log = logging.getLogger("linelib.autotuner")
    log.handlers.clear()
    log.setLevel(logging.NOTSET)
    return log


class Said(io.StringIO):
    """A stream that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.has_text = threading.Event()

    def write(self, text: str) -> int:
        done = super().write(text)
        self.has_text.set()
        return done


def test_a_line_that_ends_in_time_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    monkeypatch.setattr(sys, "stderr", said)
    line = Line(lambda columns: "far", patience_s=60)
    line.begin()
    line.end()
    assert said.getvalue() == ""


def test_a_line_is_written_to_whatever_stands_for_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    monkeypatch.setattr(sys, "stderr", said)
    line = Line(lambda columns: f"{columns} columns", patience_s=0.01)
    line.begin()
    assert said.has_text.wait(HANG_S)
    line.end()
    assert said.getvalue() == "None columns\n"


def test_what_is_urgent_is_said_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    monkeypatch.setattr(sys, "stderr", said)
    line = Line(lambda columns: "now", patience_s=60)
    line.begin()
    line.is_urgent = True
    assert said.has_text.wait(HANG_S)
    line.end()
    assert said.getvalue() == "now\n"


@pytest.mark.parametrize("closed", [True, False])
def test_a_program_without_stderr_is_not_disturbed(monkeypatch: pytest.MonkeyPatch, *, closed: bool) -> None:
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(sys, "stderr", gone if closed else None)
    asked = threading.Event()

    def text(columns: int | None) -> str:
        asked.set()
        return "nobody reads this"

    line = Line(text, patience_s=0.01)
    line.begin()
    assert asked.wait(HANG_S)
    line.end()


WAY_OUT = "Ctrl-C goes on with the best so far"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (None, "(kind=a long word for a narrow place n=4096) 12 of 40 configs, best 1.8x the default; " + WAY_OUT),
        (150, "(kind=a long word for a narrow place n=4096) 12 of 40 configs, best 1.8x the default; " + WAY_OUT),
        (100, "(kind=a long word for a narrow place n=4096) 12/40, best 1.8x; Ctrl-C goes on"),
        (79, "(kind=a long word for a narrow... 12/40, best 1.8x; Ctrl-C goes on"),
    ],
)
def test_a_narrow_place_shortens_the_line_and_keeps_the_way_out(columns: int | None, text: str) -> None:
    telling = Telling("lib", str, lambda decision, budget: budget)
    telling.hear(events.Started(SUBJECT, 40, 0))
    telling.hear(events.Evaluated({"a": 1}, Timing((1.0,)), "random", 12, 40, 0.5, 0.9))
    run = telling._run
    assert run is not None
    line = run.text("lib", WAY_OUT, columns)
    telling.hear(events.Resumed())
    assert line.removeprefix("lib: ").removeprefix("tuning ") == f"lib.run {text}"
    assert columns is None or len(line) <= columns


def test_a_run_that_ctrl_c_does_not_reach_names_another_way_out() -> None:
    telling, said = Telling("linelib", lambda: "this tunes nothing", lambda decision, budget: budget), []

    def tune() -> None:
        telling.hear(events.Started(SUBJECT, 40, 0))
        run = telling._run
        assert run is not None
        assert run.line is not None
        said.append(run.line._text(None))
        telling.hear(events.Resumed())

    thread = threading.Thread(target=tune)
    thread.start()
    thread.join()
    assert said[0].endswith("nothing better than the default yet; this tunes nothing")


def test_a_run_that_breaks_leaves_no_line_behind() -> None:
    telling = Telling("linelib", str, lambda decision, budget: budget)
    telling.hear(events.Started(SUBJECT, 40, 0))
    telling.hear(events.Resumed())
    assert not [thread for thread in threading.enumerate() if thread.name == "tunewise-line"]


def test_the_log_is_shown_although_the_library_has_a_handler_that_does_nothing(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Said()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("linelib"), "handlers", [logging.NullHandler()])
    show_log(log, "LINELIB_LOG_LEVEL", "Info")
    show_log(log, "LINELIB_LOG_LEVEL", "INFO")
    log.info("told")
    log.debug("not told")
    assert said.getvalue().count("linelib.autotuner INFO told\n") == 1
    assert "not told" not in said.getvalue()


def test_the_log_is_not_shown_twice_once_the_program_has_handlers(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Said()
    monkeypatch.setattr(sys, "stderr", said)
    show_log(log, "LINELIB_LOG_LEVEL", "debug")
    monkeypatch.setattr(logging.getLogger("linelib"), "handlers", [logging.StreamHandler(said)])
    log.debug("told")
    assert said.getvalue() == "told\n"
