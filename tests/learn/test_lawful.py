"""How far a law is true, what it tells others, and that a model says of work what the law says."""

import numpy as np
import pytest
from tiled import CONFIGS, tiled

from tunewise.learn.columns import needed
from tunewise.learn.derived import Formulas
from tunewise.learn.forests import renumbered, used
from tunewise.learn.lawful import lawful
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, crossed, pairs, settings_of
from tunewise.models import Card, Forest, Model

DATA = tiled(16)


def table(problems: int = 16) -> Pairs:
    return pairs(tiled(problems), Training(), 10**6)


def test_what_is_told_of_a_row_comes_from_laws_that_did_not_see_it() -> None:
    known = lawful(table(), seed=0)
    assert known is not None
    assert 0.5 < known.share <= 1
    assert not np.allclose(known.told, known.tells(table().values), atol=1e-3)
    assert np.corrcoef(known.told, known.tells(table().values))[0, 1] > 0.9


def test_three_problems_follow_no_law() -> None:
    assert lawful(table(3), seed=0) is None


def test_a_model_says_of_work_what_the_law_says() -> None:
    known, every = lawful(table(), seed=0), table()
    assert known is not None
    settings = settings_of(DATA)[1]
    formulas = Formulas(every.inputs)
    alone = Forest((), work=known.work(formulas, settings))
    columns, places = needed(every.problem_inputs, every.config_inputs, formulas.derived, used(alone))
    choices = tuple(dict(config) for config in CONFIGS)
    model = Model(card=Card(decision="tiled"), choices=choices, columns=columns, body=renumbered(alone, places))  # type: ignore[arg-type]
    model.check()
    problem = np.array([[77.0, 130.0]])
    assert model.guesses([77.0, 130.0]) == pytest.approx(known.tells(crossed(problem, settings)).tolist(), abs=2e-3)
