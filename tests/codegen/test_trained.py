"""Models trained on measured decisions: their code in Python and C answers as they do on every row and edge."""

import os
import random
from pathlib import Path

import pytest
from cprogram import COMPILERS, asked, build, can_be_said, has_compiler
from drawn import edges_of, problems_of
from test_python_source import differences

DATA = Path(os.environ.get("TUNEWISE_DATA", "")) / "choices"
FILES = sorted(DATA.glob("*.csv")) if os.environ.get("TUNEWISE_DATA") else []

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not FILES, reason="TUNEWISE_DATA names no directory with measured decisions in choices/"),
]


@pytest.mark.parametrize(
    ("path", "learner", "count"),
    [*((path, "tree", 10_000) for path in FILES), *((path, "ranker", 500) for path in FILES if path.stem == "c_gemm")],
    ids=lambda value: getattr(value, "stem", None),
)
def test_code_and_trained_model_agree(path: Path, learner: str, count: int, tmp_path: Path) -> None:
    datasets, training = (
        pytest.importorskip("tunewise.formats.datasets"),
        pytest.importorskip("tunewise.learn.training"),
    )
    data = datasets.read([path])
    model = training.train(data, learner=learner)
    problems = [dict(data.problem(number)) for number in range(len(data))]
    problems += [*edges_of(model), *problems_of(model, random.Random(1), count)]
    assert not differences(model, problems)
    if has_compiler("gcc"):
        questions = [(0, model, features) for features in problems if can_be_said(model, features)]
        assert asked(build([model], tmp_path, *COMPILERS[0]), questions) == [m.rank(f) for _, m, f in questions]
