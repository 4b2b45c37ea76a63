"""The near match: it answers for problems that are close in every number, never raises, and costs no more with more."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tunewise as tw
from tunewise.decision import Declaration, Environment, Part, Problem, Subject, Verdict
from tunewise.errors import TunewiseError
from tunewise.session.context import current_store
from tunewise.session.ladder import Question, climb, explain
from tunewise.session.recall import misses
from tunewise.store import MemoryStore, SqliteStore, are_near

SPACE = tw.Space({"tile": [8, 16, 32]})
NUMBERS = st.one_of(
    st.sampled_from(
        [0, -0.0, 1, True, False, 1e300, 1e-300, 5e-324, -1e300, 2**64 - 1, -(2**63), 1.7976931348623157e308]
    ),
    st.floats(),
    st.integers(),
)
FEATURES = st.dictionaries(st.sampled_from("mnkbh"), st.one_of(NUMBERS, st.text(max_size=3)), max_size=5)
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=3), st.lists(st.integers(0, 9), max_size=2))
CONFIGS = st.dictionaries(st.sampled_from(["tile", "other", ""]), VALUES, max_size=2)


def won(tile=16):
    return Verdict("win", {"tile": 8}, {"tile": tile}, (0.5, 0.5), (0.25, 0.25), 2.0, 0.001, 3, "run", at=1.0)


def about(features, cpu="here"):
    return Subject("near", Problem(features), (("steps", None),), Environment((Part("hardware.name", cpu, "must"),)))


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def crowded(request, tmp_path_factory):
    """Return a store that everybody writes to: each example finds what those before it have left."""
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path_factory.mktemp("near") / "home")
    yield store
    store.close()


@settings(max_examples=150, deadline=None)
@given(FEATURES, FEATURES, CONFIGS, CONFIGS, st.sampled_from([1.0, 1.25, 2.0, 1e308]))
def test_near_match_never_raises_for_any_features_or_rows(crowded, asked, kept, winner, default, near):
    decision = Declaration("near", space=SPACE, default={"tile": 8}, near=near)
    with suppress(TunewiseError, ValueError):  # what no store takes
        crowded.conclude(about(kept), Verdict("win", default, winner, (1.0,), (0.5,), 2.0, 0.01, 1, "r"))
    try:
        subject = about(asked)
    except TunewiseError:
        return
    question = Question(decision, subject, (), crowded)
    assert climb(question, "use").config["tile"] in (8, 16, 32)
    assert str(explain(question, "use"))


@settings(max_examples=300, deadline=None)
@given(FEATURES, FEATURES, st.floats(1, 1e6))
def test_index_finds_exactly_what_is_near(ours, theirs, ratio):
    try:
        asked, kept = about(ours), about(theirs)
    except TunewiseError:
        return
    store = MemoryStore()
    store.conclude(kept, won())
    is_near = asked != kept and are_near(asked.problem, kept.problem, ratio)
    assert bool(store.near(asked, ratio, 1)) == is_near


@pytest.fixture
def decision():
    """Return a decision that can be tuned, and whose near problems are those within a factor of two."""
    found = tw.Decision("near", space=SPACE, default={"tile": 8}, near=2.0, features=lambda n: {"n": n})
    found.implementation(lambda n, *, tile: None)
    return found


def conclude(decision, n, verdict):
    current_store().conclude(decision.subject(decision.problem({"n": n})), verdict)


def test_nearest_verdict_that_holds_answers(decision):
    conclude(decision, 64, won(16))
    conclude(decision, 90, won(32))
    conclude(decision, 100, won(48))  # no longer in the space
    conclude(decision, 101, Verdict("failed", {"tile": 8}, {"tile": 8}, detail="it broke"))
    assert [decision.decide({"n": n}).config["tile"] for n in (32, 65, 88, 103, 200, 201)] == [16, 16, 32, 32, 8, 8]
    assert decision.decide({"n": 103}).reason == "tuned for the near problem n=90"


def test_verdicts_that_do_not_hold_are_passed_over_however_near(decision):
    for n in range(1_000, 1_040):
        conclude(decision, n, won(48))
    conclude(decision, 1_100, won(32))
    assert decision.decide({"n": 1_020.5}).config == {"tile": 32}


def test_tuning_looks_again_only_where_the_verdict_may_be_near(decision):
    asked = [{"n": n} for n in (60, 100, 200, 5_000)]
    assert {decision.decide(features).rung for features in asked} == {"default"}
    for features in asked:
        decision.decide(features)
    conclude(decision, 4_000, won(32))  # behind the back of this process
    decision.bound().tune(100)
    rungs = [decision.decide(features).rung for features in asked]
    assert rungs == ["near", "memory", "near", "default"]
    tw.refresh()
    assert decision.decide({"n": 5_000}).rung == "near"
    assert {miss.problem["n"]: miss.count for miss in misses("near")} == {60: 3, 200: 3, 5_000: 4}


def test_explain_of_a_large_memory_says_what_it_compared(decision):
    for n in range(1, 101):
        conclude(decision, n, won())
    said = str(decision.explain({"n": 40.5}))
    assert "that were compared, the nearest and the last remembered, differs in problem.n" in said
    assert "tuned for the near problem n=41" in said
