"""The grammar of generated modules takes what our generators write, small edits of it, and nothing else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tunewise.codegen import python_source
from tunewise.errors import InvalidModel, NotFound
from tunewise.models import Card, Columns, Derived, Forest, Guess, Leaf, Model, Number, Split, Tree, Word, Work
from tunewise.models.grammar import check_source
from tunewise.models.source import load_source, parse_source

PROBLEM = (Number("m", 1.0, 4096.0), Word("dtype", ("f4", "f8")))
TREE = Model(
    card=Card(decision="conv", fence={"hardware.name": "Fast CPU"}, fingerprint="abc"),
    choices=({"choice": "direct"}, {"choice": "fft"}),
    columns=Columns(PROBLEM, (), (Derived("product", (0, 0)),)),
    body=Tree((Split(2, 1, 2, threshold=64.5), Leaf((1, 0)), Leaf((0,)))),
)
FOREST = Model(
    card=Card(decision="gemm"),
    choices=({"tile": 8}, {"tile": 16}),
    columns=Columns(PROBLEM, (Number("tile", 8.0, 16.0),), (Derived("remainder", (0, 2)),)),
    body=Forest(((Split(3, 1, 2, threshold=0.5), Guess(0.0), Guess(1.0)),)),
)


def test_a_module_says_what_it_is_for(tmp_path: Path) -> None:
    path = tmp_path / "conv.py"
    path.write_text(python_source(TREE))
    code = load_source(path)
    assert (code.decision, code.fence, code.fingerprint) == ("conv", {"hardware.name": "Fast CPU"}, "abc")
    assert code.features == ("m", "dtype")
    assert code.choices == ({"choice": "direct"}, {"choice": "fft"})
    assert code.rank({"m": 8, "dtype": "f4"}) == [{"choice": "fft"}, {"choice": "direct"}]
    assert code.choose({"m": 100, "dtype": "f4"}) == {"choice": "direct"}
    assert code.choose({"m": 0, "dtype": "f4"}) is None


def test_a_module_over_candidates_loads() -> None:
    assert parse_source(python_source(FOREST)).rank({"m": 24, "dtype": "f4"}) == [{"tile": 8}, {"tile": 16}]


def test_an_edited_threshold_and_an_else_are_taken() -> None:
    text = python_source(TREE).replace("m * m <= 64.5", "m * m <= 10.0 and m > 2.5")
    text = text.replace('    return ("direct",)', '    else:\n        return ("direct",)')
    code = parse_source(text)
    assert code.choose({"m": 3, "dtype": "f4"}) == {"choice": "fft"}
    assert code.choose({"m": 2, "dtype": "f4"}) == {"choice": "direct"}


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(NotFound, match=r"nowhere\.py cannot be read"):
        load_source("nowhere.py")


LINES = [  # each is put below the line that reads m
    "import os",
    "from os import system as z",
    "z = __import__('os')",
    "z = features.get('m')",
    "z = features['m'].__class__",
    "z = ().__class__",
    "z = open",
    "z = open('x')",
    "z = eval('1')",
    "z = sorted(features)",
    "z = _ranking(features)",
    "z = choose(features)",
    "z = features",
    "z = features[features]",
    "z = features['m'] * 'a'",
    "z = features['m'] * 1000000000",
    "z = 'a' * 1000000000",
    "z = '%99999999d' % 1.0",
    "z = (1,) * 1.0",
    "z = CHOICES * 1.0",
    "z = CHOICES",
    "z = 10 ** 10 ** 10",
    "z = 1.0 ** 1.0",
    "z = 1 << 99999999",
    "z = 1.0 @ 1.0",
    "z = lambda: 1.0",
    "z = 'a' if m > 1.0 else 1.0",
    "z = 1.0 if m > 'a' else 1.0",
    "z = 1.0 if features else 1.0",
    "z = 1.0 if m in CHOICES else 1.0",
    "z = 1.0 if open('x') > 1.0 else 1.0",
    "z = [x for x in features]",
    "z = {x for x in features}",
    "z = (x for x in features)",
    "z = f'{features}'",
    "if m == r'f4': return ()",
    "if m in ('f4', '\\ud800'): return ()",
    f"if m == '{'a' * 1001}': return ()",
    "z = (n := 1.0)",
    "z = yield 1.0",
    "z = await features",
    "z: float = 1.0",
    "m += 1.0",
    "y, z = 1.0, 2.0",
    "y = z = 1.0",
    "features = 1.0",
    "sorted = features['m']",
    "Exception = features['m']",
    "CHOICES = features['m']",
    "_ = features['m']",
    "__builtins__ = features['m']",
    "global z",
    "del features",
    "assert features",
    "raise Exception",
    "pass",
    "while m: pass",
    "for z in features: pass",
    "with features: pass",
    "try:\n        z = 1.0\n    finally:\n        z = 2.0",
    "def z(): pass",
    "class M: pass",
    "return features",
    "return m",
    "return ('other',)",
    "return (0,)",
    "return [CHOICES for _ in features]",
    "if features: return ()",
    "if m < CHOICES: return ()",
    "match features:\n        case _: z = 1.0",
    "features['m']",
    "print()",
]


@pytest.mark.parametrize(
    "line",
    [
        "z = m",
        "z = (m - 3.0 + 1.0 if m > 3.0 else 1.0) % 8.0",
        "z = m * 2.0",
        "z = -m // 3.0 % m",
        "if m <= 3.0: return ()",
        "y = features['y']",
    ],
)
def test_a_line_that_a_generator_could_write_is_taken(line: str) -> None:
    reading = 'm = features["m"] * 1.0'
    check_source(python_source(TREE).replace(reading, f"{reading}\n    {line}"))


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_no_generator_writes_is_refused(line: str) -> None:
    text = python_source(TREE)
    reading = 'm = features["m"] * 1.0'
    assert text.count(reading) == 1
    with pytest.raises(InvalidModel):
        check_source(text.replace(reading, f"{reading}\n    {line}"))


MODULES = [
    ("FORMAT = 1", "FORMAT = 2"),
    ("FORMAT = 1", ""),
    ("FORMAT = 1", "import os\nFORMAT = 1"),
    ("FORMAT = 1", "FORMAT = 1\nOTHER = 1"),
    ("FORMAT = 1", "FORMAT = 1\nFORMAT = 1"),
    ("FORMAT = 1", "FORMAT = 1\nprint()"),
    ("FORMAT = 1", "FORMAT = 1\nif FORMAT: pass"),
    ('DECISION = "conv"', "DECISION = 1"),
    ('DECISION = "conv"', 'DECISION = "\\ud800"'),
    ('DECISION = "conv"', f'DECISION = "{"c" * 1001}"'),
    ('"hardware.name": "Fast CPU"', '"hardware.name": 1e999'),
    ('"hardware.name": "Fast CPU"', '"hardware.name": -1e999'),
    ('"hardware.name": "Fast CPU"', '"\\ud800": "Fast CPU"'),
    ('DECISION = "conv"', "DECISION = open"),
    ('DECISION = "conv"', "DECISION = 'a' * 9"),
    ('DECISION = "conv"', "DECISION = b'conv'"),
    ('"Fast CPU"}', '"Fast CPU", **{}}'),
    ('"Fast CPU"}', '"Fast CPU", 3: 4}'),
    ('"Fast CPU"}', '"Fast CPU", "x": (1,)}'),
    ("def choose(features):", "def choose(features, more=print()):"),
    ("def choose(features):", "@print\ndef choose(features):"),
    ("def choose(features):", "def choose(features) -> print():"),
    ("def choose(features):", "async def choose(features):"),
    ("def rank(features, k=None):", "def rank(features, k=print()):"),
    ("def _ranking(features):", "def _ranking(features=print()):"),
    ("def _ranking(features):", "def _ranking(features, *more):"),
    ("def _ranking(features):", "def _ranking(features: print()):"),
    ("def _ranking(features):", "def _guess(m=print()):\n    return total\n\n\ndef _ranking(features):"),
    ("def _ranking(features):", "def _tree_0(m=print()):\n    return 1.0\n\n\ndef _ranking(features):"),
    ("def _ranking(features):", "def other(features):\n    return 1.0\n\n\ndef _ranking(features):"),
    ("def _ranking(features):", "def ranking(features):"),
    ('    return ("direct",)', "    z = 1.0"),
    ('    return ("direct",)', '    if m <= 1.0:\n        return ("direct",)'),
    ("return ranking[0] if ranking else None", "return ranking if ranking else None"),
    ("except Exception:", "except:"),
]


@pytest.mark.parametrize(("old", "new"), MODULES)
def test_a_module_with_anything_else_in_it_is_refused(old: str, new: str) -> None:
    text = python_source(TREE)
    assert old in text
    with pytest.raises(InvalidModel):
        check_source(text.replace(old, new, 1))


FORESTS = [
    ("total += _tree_0(part3)", "total += _guess(m, dtype, tile)"),
    ("total += _tree_0(part3)", "total += _tree_1(part3)"),
    ("total += _tree_0(part3)", "total += _tree_0(part3, part3)"),
    ("total += _tree_0(part3)", "total *= _tree_0(part3)"),
    ("total += _tree_0(part3)", "total += _tree_0(*CHOICES)"),
    ("part3 = m % tile", "part3 = dtype % tile"),
    ("part3 = m % tile", "part3 = m % CHOICES"),
    ("return total", "return CHOICES"),
    ("return 0.0", "return CHOICES"),
    ("return 0.0", "return _tree_0(1.0)"),
    ("return 0.0", "return 'word'"),
    ("(0, 8.0),", "(0, 8),"),
    ("(0, 8.0),", "(0, 8.0, 9.0),"),
    ("(0, 8.0),", "(7, 8.0),"),
    ("for number, tile in CANDIDATES", "for number, tile in CANDIDATES for x in CANDIDATES"),
    ("for number, tile in CANDIDATES", "for number, tile in CANDIDATES if number"),
    ("for number, tile in CANDIDATES", "for number, tile in features"),
    ("sorted(guesses)", "sorted(guesses, key=print)"),
]


@pytest.mark.parametrize(("old", "new"), FORESTS)
def test_candidates_and_trees_cannot_do_more_than_they_should(old: str, new: str) -> None:
    text = python_source(FOREST)
    assert old in text
    with pytest.raises(InvalidModel):
        check_source(text.replace(old, new, 1))


WITH_WORK = replace(FOREST, body=replace(FOREST.body, work=Work((0,), ((1.0, 2.0), (2.0, 1.0)), 0.5)))
POWERS = [
    ("total * time ** 0.5", "total * time ** 2.0"),
    ("total * time ** 0.5", "total * time ** m"),
    ("total * time ** 0.5", "total * time ** time"),
    ("total * time ** 0.5", "total * total ** 0.5"),
    ("total * time ** 0.5", "total * time"),
    ("total * time ** 0.5", "total + time ** 0.5"),
    ("2.718281828459045 ** total", "10.0 ** total"),
    ("2.718281828459045 ** total", "time ** total"),
    ("2.718281828459045 ** total", "total ** total"),
    ("2.718281828459045 ** total", "total"),
    ("time = r0 + m * r1", "time = dtype"),
    ("    time = r0 + m * r1\n", ""),
    ("(0, 8.0, 1.0, 2.0),", "(0, 8.0, 1.0, 'a'),"),
]


@pytest.mark.parametrize(("old", "new"), POWERS)
def test_no_other_power_is_taken(old: str, new: str) -> None:
    text = python_source(WITH_WORK)
    check_source(text)
    assert old in text
    with pytest.raises(InvalidModel):
        check_source(text.replace(old, new, 1))


def test_a_second_loop_over_the_candidates_is_refused() -> None:
    text = python_source(FOREST)
    loop = text[text.index("    guesses = [") : text.index("    return [number")]
    with pytest.raises(InvalidModel):
        check_source(text.replace(loop, loop * 2))


def crowded(old: str, new: str) -> str:
    """Return the code of a forest with 20,000 candidates and something else in each guess."""
    text = python_source(FOREST).replace("    (0, 8.0),\n", "    (0, 8.0),\n" * 20_000)
    assert old in text
    return text.replace(old, new)


def test_many_candidates_are_taken_where_each_takes_little() -> None:
    check_source(crowded("total += _tree_0(part3)", "total += _tree_0(part3)"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    total += _tree_0(part3)\n", "    total += _tree_0(part3)\n" * 2_000),
        (
            "    total += _tree_0(part3)\n",
            f"    part4 = {' * '.join(['part3'] * 800)}\n" * 10 + "    total += _tree_0(part3)\n",
        ),
        ("    if part3 <= 0.5:\n", f"    if {' or '.join(['part3 <= 0.5'] * 4_000)}:\n"),
        (
            "    if part3 <= 0.5:\n",
            f"    if part3 in {('word',) * 10_000}:\n        return 1.0\n    if part3 <= 0.5:\n",
        ),
        ("    if part3 <= 0.5:\n", "    if part3 <= 1.0:\n        return 1.0\n" * 4_000 + "    if part3 <= 0.5:\n"),
    ],
)
def test_code_that_takes_too_long_for_a_question_is_refused(old: str, new: str) -> None:
    with pytest.raises(InvalidModel, match=r"ranking 20001 choices takes .* at most .* fewer choices"):
        check_source(crowded(old, new))


def ifs(depth: int, indent: str = "    ") -> str:
    """Return a tree in which every way is as long."""
    if not depth:
        return f"{indent}return 1.0\n"
    return f"{indent}if part3 <= {depth}.0:\n{ifs(depth - 1, indent + '    ')}{ifs(depth - 1, indent)}"


def test_only_the_longest_way_through_a_tree_counts() -> None:
    tree = python_source(FOREST).rpartition("def _tree_0(part3):\n")[2]
    check_source(crowded(tree, ifs(12)))


@pytest.mark.parametrize(
    "deep", ["(" * 90_000 + "part3" + ")" * 90_000, "-" * 90_000 + "part3", "+".join(["part3"] * 90_000)]
)
def test_code_that_is_nested_too_deeply_is_told_so(deep: str) -> None:
    text = python_source(FOREST).replace("part3 <= 0.5", f"{deep} <= 0.5")
    with pytest.raises(InvalidModel, match=r"^not generated code: (nested too deeply|too many nested parentheses)"):
        parse_source(text)


@pytest.mark.parametrize(("part", "told"), [("m.real", "an Attribute"), ("[m]", "a List"), ("not m", "a UnaryOp")])
def test_what_does_not_belong_into_code_is_named_with_its_article(part: str, told: str) -> None:
    with pytest.raises(InvalidModel, match=f"line [0-9]+ holds {told} that"):
        check_source(python_source(FOREST).replace("part3 = m % tile", f"part3 = {part}"))
