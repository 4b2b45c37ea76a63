"""The C header ranks as its model does, compiles without a warning in C and C++, and gives choices by number."""

import random
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from cprogram import COMPILERS, asked, build, can_be_said, has_compiler
from drawn import beside, draw_model, edges_of, problems_of

from tunewise.codegen import c_source
from tunewise.errors import InvalidModel
from tunewise.models import Card, Columns, Derived, Leaf, Model, Number, Split, Tree, Word


def needs(compiler: str) -> None:
    if not has_compiler(compiler):
        pytest.skip(f"{compiler} is not installed")


def sweep(place: Path, seeds: Iterable[int], count: int, compiler: str, language: str, flags: tuple[str, ...]) -> int:
    """Return how many problems were asked of models in one program, all of which it ranks as they do."""
    rng = random.Random(7)
    models = [draw_model(random.Random(seed), decision=f"drawn {number}") for number, seed in enumerate(seeds)]
    questions = []
    for number, model in enumerate(models):
        problems = [*edges_of(model)]
        for features in problems_of(model, rng, count):
            problems += beside(features, rng)
        questions += [(number, model, features) for features in problems if can_be_said(model, features)]
    program = build(models, place, compiler, language, flags)
    wanted = [model.rank(features) for _, model, features in questions]
    assert asked(program, questions) == wanted
    assert sum(map(bool, wanted)) > len(wanted) / 5
    return len(questions)


@pytest.mark.parametrize(("compiler", "language", "flags"), COMPILERS)
def test_header_and_model_agree(tmp_path: Path, compiler: str, language: str, flags: tuple[str, ...]) -> None:
    needs(compiler)
    assert sweep(tmp_path, range(24), 40, compiler, language, flags) > 1_500


@pytest.mark.full
@pytest.mark.parametrize(("compiler", "language", "flags"), COMPILERS)
def test_header_and_model_agree_in_full(tmp_path: Path, compiler: str, language: str, flags: tuple[str, ...]) -> None:
    needs(compiler)
    assert sweep(tmp_path, range(5000, 5200), 300, compiler, language, flags) > 50_000


def test_no_compiler_fuses_a_product_with_a_difference(tmp_path: Path) -> None:
    needs("gcc")
    columns = Columns(
        (Number("m", 1.0, 2.0), Number("n", 1.0, 4.0)), (), (Derived("product", (0, 0)), Derived("difference", (2, 1)))
    )
    tree = Tree((Split(3, 1, 2, threshold=0.0), Leaf((0,)), Leaf((1,))))
    model = Model(card=Card(decision="fused"), choices=({"choice": "a"}, {"choice": "b"}), columns=columns, body=tree)
    near = 1.0 + 2.0**-30  # its square, rounded, is less than its square
    program = build([model], tmp_path, *COMPILERS[-1])
    assert asked(program, [(0, model, {"m": near, "n": near * near})]) == [model.rank({"m": near, "n": near * near})]


CHOICES = (
    {"tile": 8, "layout": "nt", "ratio": 0.1, "on": True},
    {"tile": 16, "layout": 'a"b', "ratio": 2.0, "on": False},
)


def small(choices: tuple[dict[str, object], ...] = CHOICES, words: tuple[str, ...] = ("f4",)) -> Model:
    columns = Columns((Number("m", 1.0, 64.0), Word("dtype", words)), (), (Derived("tiles", (0,), 8.0),))
    tree = Tree((Split(2, 1, 2, threshold=2.0), Leaf((1, 0), 3, 1.1, 1.2), Leaf((0,), 3, 1.1, 1.2)))
    return Model(card=Card(decision="Small one!"), choices=choices, columns=columns, body=tree)  # type: ignore[arg-type]


def test_choices_are_there_as_text_and_as_values(tmp_path: Path) -> None:
    needs("gcc")
    (tmp_path / "small.h").write_text(c_source(small()))
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "small.h"\n#include "small.h"\n'
        "int main(void)\n{\n"
        '    struct small_one_features f = {12.0, "f4"};\n'
        "    const struct small_one_config *best = small_one_config_of(small_one_choose(&f));\n"
        '    printf("%d %lld %s %.17g %d\\n", SMALL_ONE_CHOICES, best->tile, best->layout, best->ratio, best->on);\n'
        '    printf("%s\\n", small_one_choice(1));\n'
        "    f.dtype = 0;\n"
        '    printf("%d %d\\n", small_one_choose(&f), small_one_choose(0));\n'
        "    return small_one_config_of(2) != 0 || small_one_choice(-1) != 0;\n}\n"
    )
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-std=c99", "main.c", "-lm"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a.out"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        '2 16 a"b 2 0',
        '{"layout":"a\\"b","on":false,"ratio":2.0,"tile":16}',
        "-1 -1",
    ]


def test_a_word_that_c_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidModel, match="zero character"):
        c_source(small(words=("f4\0",)))


def fields_of(*names: str, decision: str = "d") -> list[str]:
    """Return what the numbers of a problem are called in the struct of a header; before them stands a word."""
    numbers = [Number(name, 1.0, 9.0) for name in names]
    columns = Columns((Word("w", ("u", "v")), *numbers), (), (Derived("tiles", (1, 1)),))
    body = Tree((Split(0, 1, 2, words=(0,)), Leaf((0,)), Leaf((1,))))
    text = c_source(Model(card=Card(decision=decision), choices=({"a": 1}, {"a": 2}), columns=columns, body=body))
    return re.findall(r"^    double (\w+);", text.partition("};")[0], re.MULTILINE)


def test_a_header_has_no_function_that_it_does_not_need() -> None:
    problem, derived = (
        (Number("m", 1.0, 9.0), Number("n", 1.0, 9.0)),
        (Derived("tiles", (0, 1)), Derived("product", (0, 1))),
    )
    body = Tree((Split(3, 1, 2, threshold=8.0), Leaf((0,)), Leaf((1,))))
    model = Model(
        card=Card(decision="d"), choices=({"a": 1}, {"a": 2}), columns=Columns(problem, (), derived), body=body
    )
    text = c_source(model)
    assert "m * n <= 8.0" in text
    assert not re.findall(r"floor_div|_rest|_product|math\.h|fmod", text)


def test_names_of_the_headers_own_macros_and_lists_are_not_given_twice() -> None:
    assert fields_of("words_0", "D_CHOICES", "TUNEWISE_D_H", "m") == ["f1", "f2", "f3", "m"]


def test_a_name_that_only_begins_like_the_decision_is_kept() -> None:
    assert fields_of("sort", "sorted_share", "sort_rank", decision="sort") == ["sort", "sorted_share", "f3"]


@pytest.mark.parametrize(("compiler", "language", "flags"), [*COMPILERS, ("g++", "c++", ("-std=gnu++17",))])
def test_no_field_is_called_like_a_macro_of_the_headers(compiler: str, language: str, flags: tuple[str, ...]) -> None:
    needs(compiler)
    command = [compiler, *flags, "-x", language, "-dM", "-E", "-"]
    text = "#include <math.h>\n#include <string.h>\n"
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    macros = re.findall(r"^#define (\w+) ", told, re.MULTILINE)
    assert "NAN" in macros
    assert not set(macros) & set(fields_of(*macros))
