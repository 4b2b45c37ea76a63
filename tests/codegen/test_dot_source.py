"""Drawings in DOT: every node and edge of a model is there, whatever its names are."""

import re

import pytest

from tunewise.codegen import dot_source, generate
from tunewise.errors import NotFound
from tunewise.models import Card, Columns, Derived, Forest, Guess, Leaf, Model, Number, Split, Tree, Word

COLUMNS = Columns((Number("m", 1.0, 64.0), Word("dtype", ("f4", 'f"8'))))
NODES = (Split(0, 1, 2, threshold=8.0), Leaf((1, 0), 12, 1.02, 1.4), Split(1, 3, 4, words=(1,)), Leaf((0,)), Leaf(()))
TREE = Model(card=Card(decision="conv"), choices=({"choice": "direct"}, {"tile": 8}), columns=COLUMNS, body=Tree(NODES))


def test_a_tree_is_drawn_with_all_its_questions_and_answers() -> None:
    lines = [line.strip() for line in dot_source(TREE).splitlines()]
    assert lines[0] == 'digraph "conv" {'
    assert 'n0 [label="m <= 8"];' in lines
    assert 'n0 -> n1 [label="yes"];' in lines
    assert 'n0 -> n2 [label="no"];' in lines
    assert r'n2 [label="dtype is f\"8"];' in lines
    assert (
        r'n1 [label="tile=8\nchoice=direct\n12 problems: regret 1.02, the default' + "'s 1.4\", shape=ellipse];"
        in lines
    )
    assert 'n4 [label="the default", shape=ellipse];' in lines


def test_a_forest_is_drawn_as_one_cluster_a_tree() -> None:
    forest = Forest(((Split(0, 1, 2, threshold=8.0), Guess(0.5), Guess(1.0)), (Guess(0.0),)))
    text = dot_source(Model(card=TREE.card, choices=({"a": 1},), columns=COLUMNS, body=forest))
    assert len(re.findall(r"subgraph cluster_\d", text)) == 2
    assert text.count("->") == 2
    assert text.count("ellipse") == 3


def test_numbers_of_formulas_and_choices_are_explained_in_a_note() -> None:
    columns = Columns((Number("m", 1.0, 64.0),), (), tuple(Derived("product", (0,) * 8) for _ in range(2)))
    columns = Columns(columns.problem, (), (*columns.derived, Derived("sum", (1, 1, 2)), Derived("ratio", (3, 1))))
    choices = tuple({f"parameter{n}": n * choice for n in range(9)} for choice in (1, 2))
    body = Tree((Split(4, 1, 2, threshold=8.0), Leaf((1,)), Leaf(())))
    text = dot_source(Model(card=TREE.card, choices=choices, columns=columns, body=body))
    assert 'n0 [label="[4] <= 8"];' in text
    assert 'n1 [label="#1 parameter1=2 parameter2=4 ..."' in text
    (note,) = re.findall(r'key \[label="(.*)", shape=note\];', text)
    said = note.replace(r"\l", " ")
    assert f"[3] = {columns.names[3]} [4] = {columns.names[4]}" in said
    assert "#1 = parameter0=0, parameter1=2," in said
    assert "#0" not in text


def test_an_unknown_language_is_named_with_those_that_exist() -> None:
    with pytest.raises(NotFound, match="'cobol'; the languages are python, c, autoheuristic, dot"):
        generate(TREE, "cobol")
