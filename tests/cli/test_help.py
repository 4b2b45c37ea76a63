"""Every help text ends with examples, and the examples run."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tunewise.cli.app import app
from tunewise.store import SqliteStore
from tunewise.testing.store_contract import subject, timed


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)


ALL = [(), *commands(app)]
# Examples of these compile and measure for a minute or so; what they do is tested beside them.
_SLOW = [
    ("demo",),
    ("fleet", "run"),
    *(
        ("torch", verb)
        for verb in ("collect", "create-validation", "train", "validate", "compare", "convert", "workflow")
    ),
]
_RUN = [pytest.param(verb, marks=pytest.mark.full if verb in _SLOW else (), id=" ".join(verb)) for verb in ALL]


def examples(*verb: str) -> list[str]:
    told = CliRunner().invoke(app, [*verb, "--help"], prog_name="tunewise").stdout
    _, found, last = told.rpartition("Example")
    assert found, f"the help of {' '.join(verb)} has no example"
    return [line.strip() for line in last.splitlines()[1:] if line.strip()]


@pytest.mark.filterwarnings("default:::torch")  # torch warns about its own insides while it compiles
@pytest.mark.parametrize("verb", _RUN)
def test_help_ends_with_examples_that_run(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path, verb: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    lines = examples(*verb)
    if verb[:1] == ("store",):  # these are about what a home and another one hold
        for place in (home, tmp_path / "other"):
            SqliteStore(place).add(subject(), [timed(8)])
    if any(" torch " in line for line in lines):
        pytest.importorskip("torch", reason="torch is not installed")
    assert any(line.startswith(" ".join(["tunewise", *verb])) for line in lines)
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "tunewise"
        result = cli(*words)
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("verb", ALL[1:], ids=" ".join)
def test_every_verb_says_what_it_does_in_a_short_line(verb: tuple[str, ...]) -> None:
    listed = CliRunner().invoke(app, [*verb[:-1], "--help"], prog_name="tunewise").stdout
    line = next(line for line in listed.splitlines() if line.strip().startswith(f"{verb[-1]} "))
    assert not line.endswith("...")
