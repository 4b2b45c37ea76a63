"""Names are data in every language: whatever they hold, the code around them stays what it is for harmless names."""

import ast
import random
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cprogram import has_compiler
from drawn import draw_model, problems_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunewise.codegen import autoheuristic_source, c_source, dot_source, python_source
from tunewise.errors import InvalidModel
from tunewise.models import Model
from tunewise.models.source import parse_source

EVIL = [
    "');import os;os.system('touch PWN')#",
    '"""\nimport os\n"""',
    "a\nimport os",
    "__import__('os').system('id')",
    "*/ int main(void) { system(0); } /*",
    "//*/*/**/",
    "??/\n*/",
    "*??/",
    "\\\n*/",
    "\\",
    "'",
    '"',
    '"];} digraph { evil [label="',
    "\\N\\G\\l\\",
    "\u2028import os",
    "\u2029\x85\x0b\x0c\x1c",
    "\u202e",
    "\U0001f600",
    "coding: utf-7 +AAo-import os",
    "-*- coding: latin-1 -*-",
    "\ufeff",
    "{x}",
    "{}",
    "%s%n",
    "class",
    "features",
    "sorted",
    "None",
    "int",
    "unix",
    "__FILE__",
    "f0",
    "d3",
    "part3",
    "time_3",
    "time_default",
    "w0",
    "_tree_0",
    "1",
    " ",
    "\t",
    "\r",
    "\x7f",
    "#include <stdlib.h>",
    "<b onload=x>",
    "x" * 1000,
    "hardware.name",
]
NAME = st.one_of(
    st.sampled_from(EVIL),
    st.text(min_size=1, max_size=40),
    st.text(alphabet="'\"\\\n\r\t{}()#;,=*/?<> importos_", min_size=1, max_size=30),
)
# A dozen names a case, so that 2,000 cases are 24,000 names.
CASE = st.tuples(st.lists(NAME, min_size=12, max_size=12, unique=True), st.integers(0, 1 << 30))
CALM = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def twins(names: Sequence[str], seed: int) -> tuple[Model, Model]:
    """Return one model twice: by hostile names, and by harmless ones in their place."""
    harmless = [f"name{place}" for place in range(len(names))]
    hostile = draw_model(random.Random(seed), names=names, decision=names[0])
    return hostile, draw_model(random.Random(seed), names=harmless, decision=harmless[0])


def python_skeleton(text: str) -> str:
    """Return the tree of a module with every name and every text left out, read from bytes as an import would."""
    tree = ast.parse(text.encode())
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def skeleton(text: str) -> str:
    """Return C or DOT with comments gone, texts empty, all words alike, and no key to long names."""
    without = re.sub(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/', lambda met: '""' if met[0][0] == '"' else "", text, flags=re.S)
    without = without.replace('    key [label="", shape=note];\n', "")
    return re.sub(r"[ \n]+", " ", re.sub(r"[A-Za-z_]\w*", "w", without))


def injections(names: Sequence[str], seed: int) -> list[str]:
    """Return the languages in which the names have changed the code around them, or the answers."""
    try:
        hostile, harmless = twins(names, seed)
    except InvalidModel:  # half a character, or the like: no model can hold it
        return []
    found = []
    code = python_source(hostile)
    if python_skeleton(code) != python_skeleton(python_source(harmless)) or not code.isascii():
        found.append("python")
    loaded = parse_source(code)
    assert loaded.decision == names[0]
    assert loaded.features == tuple(column.name for column in hostile.columns.problem)
    assert loaded.fence == hostile.card.fence
    for features in problems_of(hostile, random.Random(seed), 5):
        if loaded.rank(features) != [hostile.choices[number] for number in hostile.rank(features)]:
            found.append("answers")
    for language, write in (("c", c_source), ("dot", dot_source)):
        try:
            text = write(hostile)
        except InvalidModel:
            assert language == "c"
            assert any("\0" in name for name in names)
            continue
        if skeleton(text) != skeleton(write(harmless)) or not text.isascii():
            found.append(language)
    return found


@given(CASE)
@settings(CALM, max_examples=120)
def test_no_name_changes_the_code_around_it(case: tuple[list[str], int]) -> None:
    assert not injections(*case)


@pytest.mark.full
@given(CASE)
@settings(CALM, max_examples=2_000)
def test_no_name_changes_the_code_around_it_in_full(case: tuple[list[str], int]) -> None:
    assert not injections(*case)


def compiled(place: Path, count: int) -> None:
    """Compile headers of hostile models as one program, as C with trigraphs and as C++, warnings being errors."""
    rng = random.Random(5)
    parts = []
    for number in range(count):
        names = rng.sample([name for name in EVIL if "\0" not in name], 12)
        model = draw_model(rng, names=names, decision=f"hostile {number} {names[0][:500]}")
        (place / f"hostile_{number}.h").write_text(c_source(model))
        parts.append(f'#include "hostile_{number}.h"')
    (place / "all.c").write_text("\n".join(parts) + "\nint main(void)\n{\n    return 0;\n}\n")
    strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "all.c"]
    for command in (["gcc", "-std=c99", *strict], ["g++", "-std=c++11", "-x", "c++", *strict]):
        ran = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[:3000]


@pytest.mark.skipif(not (has_compiler("gcc") and has_compiler("g++")), reason="gcc and g++ are not installed")
def test_headers_with_hostile_names_compile(tmp_path: Path) -> None:
    compiled(tmp_path, 60)


@pytest.mark.full
@pytest.mark.skipif(not (has_compiler("gcc") and has_compiler("g++")), reason="gcc and g++ are not installed")
def test_headers_with_hostile_names_compile_in_full(tmp_path: Path) -> None:
    compiled(tmp_path, 500)


@given(CASE)
@settings(CALM, max_examples=60)
def test_an_artifact_for_autoheuristic_keeps_its_shape(case: tuple[list[str], int]) -> None:
    from msgspec.structs import replace

    names, seed = case
    try:
        models = [replace(model, card=replace(model.card, fence={})) for model in twins(names, seed)]
        hostile, harmless = map(autoheuristic_source, models)
    except InvalidModel:  # configs of several parameters
        return
    assert python_skeleton(hostile) == python_skeleton(harmless)
