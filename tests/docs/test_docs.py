"""The documents run, their links lead somewhere, and nothing public is left undocumented."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import get_args

import click
import documents
import pytest
from documents import DOCUMENTS, ROOT, sections

import tunewise
from limits import HANG_S
from tunewise import errors, settings
from tunewise.cli.app import app
from tunewise.measure.compiler import find_compiler
from tunewise.session import events

REFERENCE = ROOT / "docs" / "reference"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if documents.is_runnable(p.read_text())], ids=shown)
def test_the_blocks_of_a_document_run_in_order(
    path: Path, tmp_path: Path, home: Path, request: pytest.FixtureRequest
) -> None:
    if "CKernel(" in path.read_text() and not has_compiler():
        pytest.skip("no C compiler is installed")
    if any(mark in path.read_text() for mark in ("--learner net", "\nimport torch\n", "$ tunewise torch ")):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if "OpenCLKernel(" in path.read_text():
        request.getfixturevalue("pocl")
    place = tmp_path / "work"
    place.mkdir()
    shutil.copytree(ROOT / "examples", place / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    program = place / f"{path.stem}_md.py"
    program.write_text(documents.script(path.read_text()))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    env = {
        **os.environ,
        **one_thread,
        "TUNEWISE_HOME": str(home),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }
    ran = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", program.name],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert ran.returncode == 0, f"{shown(path)}, by its own line numbers:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"


def has_compiler() -> bool:
    try:
        find_compiler()
    except errors.MissingPart:
        return False
    return True


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_relative_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target in _LINK.findall(path.read_text()):
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if "://" not in target and (not place.exists() or (anchor and anchor not in anchors(place))):
            broken.append(target)
    assert not broken


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_document_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    linked = {(ROOT / "docs" / target).resolve() for target in _LINK.findall(index)}
    assert not {shown(p) for p in (ROOT / "docs").rglob("*.md") if p.name != "README.md" and p.resolve() not in linked}


@pytest.mark.parametrize("name", tunewise.__all__)
def test_a_public_name_is_documented_with_all_it_takes(name: str) -> None:
    section = section_of("api.md", f"tw.{name}")
    missing = [part for part in parts_of(getattr(tunewise, name)) if not re.search(rf"\b{part}\b", section)]
    assert not missing, f"docs/reference/api.md says nothing of these parts of tw.{name}"


SIGNATURES = {
    heading.split("(")[0].removeprefix("`tw."): heading.strip("`").removeprefix("tw.")
    for heading in sections((REFERENCE / "api.md").read_text(), 3)
    if "(" in heading
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_documented_signature_is_the_real_one(name: str) -> None:
    call = SIGNATURES[name]
    (written,) = ast.parse(f"def {call}: pass").body
    assert isinstance(written, ast.FunctionDef)
    real = inspect.signature(getattr(tunewise, name)).parameters
    kinds = {parameter.name: parameter.kind for parameter in real.values()}
    given = written.args
    assert [arg.arg for arg in given.args] == [n for n, kind in kinds.items() if kind.name == "POSITIONAL_OR_KEYWORD"]
    assert [arg.arg for arg in given.kwonlyargs] == [n for n, kind in kinds.items() if kind.name == "KEYWORD_ONLY"]
    for argument, default in documented_defaults(given):
        assert default is real[argument].default or default == real[argument].default


def documented_defaults(given: ast.arguments) -> Iterator[tuple[str, object]]:
    """Yield the defaults that are written as plain values; others, such as `Check()`, are for people only."""
    last = given.args[len(given.args) - len(given.defaults) :]
    for arg, default in [
        *zip(last, given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]:
        if isinstance(default, ast.Constant):
            yield arg.arg, default.value


def parts_of(thing: object) -> Iterator[str]:
    """Yield the arguments of a function; the fields, public methods and properties of a class."""
    if isinstance(thing, FunctionType):
        yield from inspect.signature(thing).parameters
    if not isinstance(thing, type) or issubclass(thing, Exception):
        return
    if is_dataclass(thing):
        yield from (field.name for field in fields(thing) if not field.name.startswith("_"))
    for base in thing.__mro__:
        if base.__module__.startswith("tunewise"):
            for name, held in vars(base).items():
                if not name.startswith("_") and isinstance(held, FunctionType | property):
                    yield name


def test_every_error_and_warning_is_documented() -> None:
    text = (REFERENCE / "errors.md").read_text()
    classes = [name for name, held in vars(errors).items() if isinstance(held, type)]
    assert classes
    assert not [name for name in classes if f"`{name}`" not in text]


def test_every_setting_is_documented() -> None:
    text = (REFERENCE / "settings.md").read_text()
    assert not [name for name in settings.VARIABLES if f"`{name}`" not in text]
    assert not [mode for mode in settings.MODES if f"`{mode}`" not in text]


def test_every_event_is_documented_with_its_fields() -> None:
    for event in get_args(events.Event):
        section = section_of("events.md", event.__name__)
        assert not [field.name for field in fields(event) if f"`{field.name}`" not in section]


def commands(command: click.Command, *above: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(above), command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(below, *above, name)


VERBS = dict(commands(app, "tunewise"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_documented_with_its_arguments_and_options(verb: str) -> None:
    section, command = section_of(page_of(verb), verb), VERBS[verb]
    options = [max(p.opts, key=len) for p in command.params if isinstance(p, click.Option)]
    arguments = [(p.metavar or p.name or "").upper() for p in command.params if isinstance(p, click.Argument)]
    assert not [option for option in options if not re.search(rf"`{option}[ `]", section)]
    assert not [argument for argument in arguments if argument not in section]


def page_of(verb: str) -> str:
    """Return the page that documents a verb."""
    pages = {"torch": "cli-torch.md", **dict.fromkeys(("store", "doctor", "metrics", "fleet"), "cli-operations.md")}
    return pages.get(verb.split()[1] if " " in verb else "", "cli.md")


def test_no_option_is_documented_that_does_not_exist() -> None:
    known = {opt for command in VERBS.values() for param in command.params for opt in param.opts}
    named = {option for path in REFERENCE.glob("cli*.md") for option in re.findall(r"`(--[\w-]+)", path.read_text())}
    assert named <= known | {"--help"}


def section_of(document: str, subject: str) -> str:
    """Return the section whose heading starts with a subject in backticks; fails if there is none."""
    found = [
        body
        for level in (2, 3)
        for heading, body in sections((REFERENCE / document).read_text(), level).items()
        if re.match(rf"`{re.escape(subject)}[`(]", heading)
    ]
    assert len(found) == 1, f"docs/reference/{document} needs one heading `{subject}`"
    return found[0]
