"""A leaf answers only where held-out problems say that it does better than the default."""

import numpy as np

from tunewise.learn.growing import Branch, Grown
from tunewise.learn.leaves import Evidence, nodes_of
from tunewise.learn.questions import Question
from tunewise.models import Leaf


def stump(low_cost: list[float], high_cost: list[float]) -> Grown:
    """Return a tree of one question, with the costs of two choices on both sides."""
    question = Question(column=0, gain=1.0, threshold=5.0)
    return Grown(
        (
            Branch(np.array([0.5, 0.5]), 20.0, question, 1, 2, 0),
            Branch(np.array(low_cost), 10.0),
            Branch(np.array(high_cost), 10.0),
        )
    )


def evidence(ours_low: float, ours_high: float, default: float) -> Evidence:
    ends = np.repeat([1, 2], 10)
    return Evidence(ends, np.repeat([ours_low, ours_high], 10), np.full(20, default))


def safe(choice: int, problems: np.ndarray) -> bool:
    return False


def test_a_leaf_that_did_worse_than_the_default_abstains() -> None:
    nodes = nodes_of(stump([0.0, 1.0], [1.0, 0.0]), evidence(0.1, 2.0, 0.8), default=0, is_unsafe=safe)
    low, high = nodes[1:]
    assert isinstance(low, Leaf)
    assert isinstance(high, Leaf)
    assert (low.ranking, high.ranking) == ((0, 1), ())
    assert high.regret > high.default_regret


def test_a_leaf_that_names_the_default_answers() -> None:
    nodes = nodes_of(stump([0.0, 1.0], [1.0, 0.0]), evidence(2.0, 0.1, 0.8), default=0, is_unsafe=safe)
    assert [node.ranking for node in nodes if isinstance(node, Leaf)] == [(0, 1), (1, 0)]


def test_little_evidence_against_a_leaf_does_not_silence_it_where_the_default_is_bad() -> None:
    seen = Evidence(np.repeat([1, 2], [9, 1]), np.repeat([0.0, 1.2], [9, 1]), np.full(10, 1.0))
    nodes = nodes_of(stump([0.0, 1.0], [2.0, 0.0]), seen, default=0, is_unsafe=safe)
    assert [node.ranking for node in nodes if isinstance(node, Leaf)] == [(0, 1), (1, 0)]


def test_what_enough_problems_say_against_a_leaf_no_expectation_outweighs() -> None:
    for count, ranking in ((4, (1, 0)), (5, ())):
        seen = Evidence(np.repeat([1, 2], [20, count]), np.repeat([0.0, 1.1], [20, count]), np.full(20 + count, 1.0))
        (*_, high) = nodes_of(stump([0.0, 1.0], [2.0, 0.0]), seen, default=0, is_unsafe=safe)
        assert isinstance(high, Leaf)
        assert high.ranking == ranking
    assert (high.regret, high.default_regret) == (3.004, 2.718)  # as they were held out


def test_a_leaf_nobody_can_speak_for_abstains_where_the_whole_gains_nothing() -> None:
    seen = Evidence(np.full(20, 1), np.full(20, 0.1), np.full(20, 0.05))
    nodes = nodes_of(stump([0.0, 1.0], [2.0, 0.0]), seen, default=0, is_unsafe=safe)
    assert [node.ranking for node in nodes if isinstance(node, Leaf)] == [(0, 1), ()]


def test_no_leaf_abstains_without_a_default() -> None:
    seen = Evidence(np.repeat([1, 2], 10), np.full(20, 3.0), None)
    nodes = nodes_of(stump([0.0, 1.0], [1.0, 0.0]), seen, default=None, is_unsafe=safe)
    assert [node.ranking for node in nodes if isinstance(node, Leaf)] == [(0, 1), (1, 0)]


def test_a_leaf_called_unsafe_abstains() -> None:
    def is_unsafe(choice: int, problems: np.ndarray) -> bool:
        return choice == 1 and problems.tolist() == list(range(10, 20))

    nodes = nodes_of(stump([0.0, 1.0], [1.0, 0.0]), evidence(0.0, 0.0, 1.0), default=0, is_unsafe=is_unsafe)
    assert [node.ranking for node in nodes if isinstance(node, Leaf)] == [(0, 1), ()]
