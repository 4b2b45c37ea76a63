from pathlib import Path

import click
import pytest

from tunewise.cli.problems import Pairs, check_names, gather, read
from tunewise.decision import Problem, Space
from tunewise.errors import InvalidFile, InvalidProblem, NotFound
from tunewise.session import Decision


def parsed(text: str) -> dict[str, object]:
    return Pairs().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m=256", {"m": 256}),
        ("m=256,n=-3", {"m": 256, "n": -3}),
        (" m = 1 , x = 2.5 ", {"m": 1, "x": 2.5}),
        ("x=1e3,y=.5", {"x": 1000.0, "y": 0.5}),
        ("fast=true,slow=False", {"fast": True, "slow": False}),
        ("dtype=float32", {"dtype": "float32"}),
        ("name='a,b=c'", {"name": "a,b=c"}),
        ('digits="7"', {"digits": "7"}),
        ("word=nan", {"word": "nan"}),
        ("path=a=b", {"path": "a=b"}),
    ],
)
def test_pairs_are_read_as_people_write_them(text: str, expected: dict[str, object]) -> None:
    found = parsed(text)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


def test_a_number_of_too_many_digits_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"m\n1{5000 * '0'}\n")
    with pytest.raises(InvalidFile, match=r"long\.csv:2.*m=inf is not a finite number"):
        read(path)
    with pytest.raises(InvalidProblem, match="m=inf is not a finite number"):
        Problem(parsed(f"m=1{5000 * '0'}"))


@pytest.mark.parametrize("text", ["", "m", "m=", "=3", "m=1,,n=2", "m=1,m=2", "m='a", ","])
def test_what_is_no_pair_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parsed(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "m,dtype\n64,float32\n\n128,float64\n"),
        ("a.json", '[{"m": 64, "dtype": "float32"}, {"m": 128, "dtype": "float64"}]'),
        ("a.jsonl", '{"m": 64, "dtype": "float32"}\n\n{"m": 128, "dtype": "float64"}\n'),
        ("bom.csv", "\ufeffm, dtype\n64, float32\n128, float64\n"),
    ],
)
def test_files_hold_many_problems(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert read(path) == [{"m": 64, "dtype": "float32"}, {"m": 128, "dtype": "float64"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "holds no problems"),
        ("m,n\n", "holds no problems"),
        ("m,m\n1,2\n", ":1 is not a header"),
        ("m,n\n1,2\n3\n", ":3 has 1 cells and the header 2"),
        ("[1, 2]", "problem 1: features must be a dict"),
        ('[{"m": [1]}]', r"problem 1: feature m=\[1\]"),
        ('{"m": 1}\n{"m": }', ":2 is not a JSON object"),
        ("[" * 100_000, "is not a JSON list"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "problems"
    path.write_text(text)
    with pytest.raises(InvalidFile, match=expected):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        gather([], tmp_path / "none.csv")


def decision(name: str, **facts: object) -> Decision:
    return Decision(
        name,
        space=Space({"x": [1]}),
        default={"x": 1},
        features=lambda m, n: {"m": m, "n": n},
        inputs=lambda problem, seed: (problem["m"], problem["n"]),
        **facts,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ({"m": 1}, r"named misses n in the problem m=1; it needs --problem m=1,n=\.\.\."),
        ({"m": 1, "n": 2, "kk": 3}, "named does not know kk in"),
        ({"m": 1, "nn": 2}, "named does not know nn and misses n in"),
    ],
)
def test_a_feature_too_few_or_too_many_is_named(problem: dict[str, int], expected: str) -> None:
    with pytest.raises(InvalidProblem, match=expected):
        check_names(decision("named"), [{"m": 4, "n": 4}, problem])
    with pytest.raises(InvalidProblem, match=expected):
        check_names(decision("named"), [problem])


def test_problems_that_suit_pass() -> None:
    check_names(decision("suits"), [{"m": 1, "n": 2}, Problem({"n": 1, "m": 3})])
