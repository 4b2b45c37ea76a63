"""Headers put to work: one C or C++ program that asks many models and prints how each ranks its problems."""

import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from drawn import Features

from tunewise.codegen import c_source
from tunewise.codegen.literals import c_string
from tunewise.codegen.naming import plain_word
from tunewise.models import Model, Word

STRICT = ("-Wall", "-Wextra", "-Werror", "-O2")
COMPILERS = [
    ("gcc", "c", ("-std=c99",)),
    ("g++", "c++", ("-std=c++11",)),
    ("gcc", "c", ("-std=gnu11", "-march=native")),
]

_ASK = """
static int ask_{number}(char **cell, int *out)
{{
    static const char *const words[] = {{{words}}};
    struct {prefix}_features f = {{{values}}};
    (void)words; (void)cell;
    return {prefix}_rank(&f, {choices}, out) == ({prefix}_choose(&f) >= 0 ? {prefix}_rank(&f, {choices}, out) : 0)
        ? {prefix}_rank(&f, {choices}, out) : -1;
}}
"""
_MAIN = """
int main(void)
{
    static char line[1 << 16];
    static int out[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        char *cell[64];
        int cells = 0, count, place;
        char *next = strtok(line, " \\n");
        for (; next && cells < 64; next = strtok(0, " \\n"))
            cell[cells++] = next;
        count = asks[atoi(cell[0])](cell + 1, out);
        for (place = 0; place < count; place++)
            printf("%d ", out[place]);
        printf("%s\\n", count < 0 ? "choose and rank differ" : "");
    }
    return 0;
}
"""


def has_compiler(name: str) -> bool:
    return shutil.which(name) is not None


def build(models: Sequence[Model], place: Path, compiler: str, language: str, flags: Sequence[str]) -> Path:
    """Compile a program over models, whose decisions need different names; any warning is an error."""
    parts = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
    for number, model in enumerate(models):
        header = place / f"model_{number}.h"
        header.write_text(c_source(model))
        parts.append(f'#include "{header.name}"')
    parts += [_ask(number, model) for number, model in enumerate(models)]
    table = ", ".join(f"ask_{number}" for number in range(len(models)))
    parts += [f"static int (*const asks[])(char **, int *) = {{{table}}};", _MAIN]
    source, program = place / "program.c", place / f"program_{language}"
    source.write_text("\n".join(parts))
    command = [compiler, *flags, *STRICT, "-x", language, source.name, "-o", str(program), "-lm"]
    built = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:4000]
    return program


def asked(program: Path, questions: Sequence[tuple[int, Model, Features]]) -> list[list[int]]:
    """Return the rankings of a program for problems, each with the number of its model."""
    lines = [f"{number} {' '.join(_cells(model, features))}" for number, model, features in questions]
    ran = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [[int(cell) for cell in line.split()] for line in ran.stdout.splitlines()]


def can_be_said(model: Model, features: Features) -> bool:
    """Return whether C can say a problem: all features are there, numbers are numbers, and words are words."""
    for column in model.columns.problem:
        value = features.get(column.name)
        kinds = (str,) if isinstance(column, Word) else (int, float)
        if not isinstance(value, kinds) or (isinstance(value, int) and abs(value) > 2**1000):
            return False
    return True


def _ask(number: int, model: Model) -> str:
    values, words = [], ['"unknown"']
    for place, column in enumerate(model.columns.problem):
        if isinstance(column, Word):
            values.append(f"words[atoi(cell[{place}])]")
            words += map(c_string, column.words)
        else:
            values.append(f"strtod(cell[{place}], 0)")
    prefix = plain_word(model.card.decision, "decision")
    return _ASK.format(
        number=number, prefix=prefix, values=", ".join(values), words=", ".join(words), choices=len(model.choices)
    )


def _cells(model: Model, features: Features) -> list[str]:
    cells, first = [], 1
    for column in model.columns.problem:
        value = features[column.name]
        if isinstance(column, Word):
            cells.append(str(first + column.words.index(str(value))) if value in column.words else "0")
            first += len(column.words)
        else:
            number = float(value)  # type: ignore[arg-type]
            cells.append(number.hex() if math.isfinite(number) else str(number))
    return cells
