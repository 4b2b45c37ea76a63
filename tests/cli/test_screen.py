"""What is shown: nothing that a name or a file contains can steer the terminal, and numbers stay whole."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from rich.console import Console

from tunewise.cli.progress import watching
from tunewise.cli.screen import Screen, harmless, one_line
from tunewise.decision import Environment, Problem, Subject, Verdict
from tunewise.session import events

HOSTILE = ["a\"b'c", "line\nbreak", "<script>alert(1)</script>", "../x", "[bold]x[/bold]", "[/b]", "\x1b[31mred\x07"]
DECLARED = """
import tunewise as tw

named = tw.Decision({name!r}, space=tw.Space({{"w": [1, 2]}}), default={{"w": 1}}, features=lambda n: {{"n": n}},
                    inputs=lambda problem, seed: (problem["n"],))

@named.implementation
def run(n, *, w):
    return n
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_tuned_listed_and_shown_as_text(
    cli: Callable[..., Result], home: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "named.py"
    file.write_text(DECLARED.format(name=name))
    told = [cli("tune", file, "--problem", "n=1", "--budget", 2), cli("store", "info"), cli("best", name)]
    for result in told:
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
        assert "\x07" not in result.output
    assert f"trials of {one_line(name)}" in told[1].stdout
    assert sorted(path.name for path in home.iterdir() if path.is_file()) == sorted(
        path.name for path in home.glob("store*")
    )


def test_control_characters_are_written_out() -> None:
    assert harmless("plain é ✓") == "plain é ✓"
    assert harmless("a\x1b[2Jb\nc") == "a\\x1b[2Jb\nc"
    assert one_line("a\r\nb\tc") == "a\\r\\nb\\tc"


def terminal(width: int) -> tuple[Screen, io.StringIO]:
    written = io.StringIO()
    screen = Screen()
    screen.out = screen.err = Console(
        file=written, force_terminal=True, width=width, highlight=False, markup=False, emoji=False
    )
    return screen, written


@pytest.mark.parametrize("name", ["[bold]x", "[/b]"])
def test_progress_on_a_terminal_takes_names_and_details_as_text(name: str) -> None:
    screen, written = terminal(200)
    subject = Subject(name, Problem({"n": 1}), (), Environment(()))
    with watching(screen) as watcher:
        watcher.hear(events.Started(subject, 4, 0))
        watcher.hear(events.Concluded(Verdict("failed", {}, {}, detail="see [/tmp/log]\nand more")))
    assert name in written.getvalue()
    assert "see [/tmp/log] and more" in written.getvalue()


def test_a_narrow_terminal_breaks_words_but_no_numbers() -> None:
    screen, written = terminal(40)
    screen.table(
        ("problem", "time"), [("columns=100000 rows=20000 dtype=float32", "12.3 us") for _ in range(2)], right=("time",)
    )
    assert written.getvalue().count("12.3 us") == 2
