"""A heuristic is a rung of the ladder: below memory, above near matches, and it may decline with a reason."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import Loop

import tunewise as tw
from tunewise.errors import InvalidSetting
from tunewise.heuristics.shipped import shipped
from tunewise.session import recall, shelf


@pytest.fixture(autouse=True)
def empty_shelf(home: object) -> Iterator[None]:
    yield
    tw.drop_heuristics()


def heuristic(rank: Any, name: str = "mine", decision: str = "loop", **facts: Any) -> tw.Heuristic:
    return tw.Heuristic(name, decision, rank, **facts)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts heuristics in force."""

    def loaded(*given: tw.Heuristic) -> None:
        monkeypatch.setattr("tunewise.session.shelf.load_plugin", lambda name: given)
        tw.load_heuristic(plugin="given")

    return loaded


FAST = [{"steps": 1}]


def always(features: Any) -> Any:
    return FAST


def test_a_heuristic_answers_what_memory_does_not_know(load: Any) -> None:
    it = Loop()
    assert it.loop.decide(8).rung == "default"
    load(heuristic(always, about="a tree"))
    answer = it.loop.decide(8)
    assert (answer.rung, answer.source, answer.reason) == ("learned", "mine", "a tree")
    assert it.loop(8) == 8
    assert it.calls == {1: 1}


def test_memory_and_pins_come_before_it(load: Any) -> None:
    it = Loop()
    it.loop.tune(8)
    load(heuristic(lambda features: [{"steps": 4}]))
    assert it.rung == "memory"
    it.decision.pin({"steps": 4})
    assert it.rung == "pin"


def test_it_comes_before_a_near_match(load: Any) -> None:
    it = Loop()
    it.loop.tune(8)
    assert it.decision.decide({"n": 9}).rung == "near"
    load(heuristic(always))
    assert it.decision.decide({"n": 9}).rung == "learned"


def test_replay_and_off_do_not_ask_it(load: Any) -> None:
    it = Loop()
    load(heuristic(always))
    assert [it.decision.decide({"n": 8}, mode=mode).rung for mode in ("replay", "off")] == ["default", "default"]


def test_tune_mode_measures_all_the_same_unless_it_is_accepted(load: Any) -> None:
    it = Loop()
    load(heuristic(always))
    with tw.mode("tune", accept=["learned"]):
        assert it.loop.decide(8).rung == "learned"
    with tw.mode("tune"):
        assert it.loop.decide(8).rung == "memory"


def test_only_learned_and_near_can_be_accepted() -> None:
    with pytest.raises(InvalidSetting, match="learned, near"), tw.mode("tune", accept=["default"]):
        pass


def test_the_features_given_to_it_are_the_derived_ones_too(load: Any) -> None:
    asked = []
    it = Loop(derived={"twice": lambda problem: 2 * problem["n"]})
    load(heuristic(lambda features: asked.append(dict(features)) or FAST))
    it.loop.decide(8)
    assert asked == [{"n": 8, "twice": 16}]


def test_a_warm_answer_asks_it_no_more_and_is_one_miss(load: Any) -> None:
    asked = []
    it = Loop()
    load(heuristic(lambda features: asked.append(1) or FAST))
    for _ in range(5):
        assert it.loop.decide(8).rung == "learned"
    assert len(asked) == 1
    assert [(miss.problem["n"], miss.count) for miss in recall.misses("loop")] == [(8, 1)]


def test_the_one_loaded_last_is_asked_first(load: Any) -> None:
    it = Loop()
    load(heuristic(lambda features: [{"steps": 4}], "older"))
    load(heuristic(always, "newer"))
    assert it.loop.decide(8).source == "newer"


def test_the_next_one_is_asked_where_one_declines(load: Any) -> None:
    it = Loop()
    load(heuristic(lambda features: [], "first"), heuristic(always, "second"))
    assert it.loop.decide(8).source == "second"


def test_a_partial_config_is_completed_from_the_default(load: Any) -> None:
    decision = tw.Decision("wide", space=tw.Space({"a": [1, 2], "b": [3, 4]}), default={"a": 1, "b": 4})
    load(heuristic(lambda features: [{"a": 2}], decision="wide"))
    assert decision.decide({"n": 1}).config == {"a": 2, "b": 4}


def said(it: Loop) -> str:
    explanation = it.decision.explain({"n": 8})
    assert explanation.answer.rung == "default"
    return next(step.said for step in explanation.steps if step.rung == "learned")


def test_explain_says_that_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunewise.session.shelf.shipped", tuple)
    assert said(Loop()) == "no heuristic is loaded"


def test_explain_names_the_decisions_that_are_known(load: Any) -> None:
    load(heuristic(always, decision="a_gemm"))
    assert said(Loop()).startswith("no heuristic knows the decision loop; there are some for a_gemm")


def test_models_that_come_with_tunewise_are_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "ours_model.json")
    monkeypatch.setattr("tunewise.session.shelf.shipped", lambda: shipped(tmp_path))
    it = Loop()
    assert it.loop.decide(8).source == "ours_model.json"
    write_model(tmp_path / "elsewhere" / "named.json")
    tw.configure(heuristics=[tmp_path / "elsewhere"])
    assert it.loop.decide(8).source == "named.json"


def test_one_place_can_answer_alone_for_a_while(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "ours_model.json")
    write_model(tmp_path / "elsewhere" / "named.json", decision="another")
    monkeypatch.setattr("tunewise.session.shelf.shipped", lambda: shipped(tmp_path))
    load(heuristic(always))
    it = Loop()
    with shelf.alone(tmp_path / "elsewhere"):
        assert it.rung == "default"
    assert it.loop.decide(8).source == "mine"


def test_explain_names_the_hardware_a_heuristic_is_for(load: Any) -> None:
    load(heuristic(always, fence={"hardware.kind": "cuda"}))
    assert said(Loop()) == "mine is for hardware.kind='cuda', and here it is 'cpu'"


def test_explain_says_that_a_heuristic_abstains(load: Any) -> None:
    load(heuristic(lambda features: []))
    assert said(Loop()).startswith("mine abstains")


def test_explain_names_a_feature_that_is_missing(load: Any) -> None:
    load(heuristic(lambda features: [], features=("n", "rows")))
    assert said(Loop()) == "mine needs the feature rows, which is not among n"


def test_explain_says_what_is_not_in_the_space(load: Any) -> None:
    load(heuristic(lambda features: [{"steps": 3}]))
    assert said(Loop()).startswith("mine answers what is not in the space: steps=3")


def test_explain_gives_the_reason_of_every_heuristic(load: Any) -> None:
    load(heuristic(lambda features: [], "a"), heuristic(lambda features: [], "b"))
    assert [part.split()[0] for part in said(Loop()).split("; ")] == ["a", "b"]


@pytest.mark.parametrize("answer", [None, 7, [7], ["word"]])
def test_a_heuristic_that_answers_nonsense_is_passed_over(answer: Any, load: Any) -> None:
    load(heuristic(lambda features: answer))
    assert "broke with" in said(Loop())


def test_a_broken_heuristic_is_reported_once_and_stops_nothing(load: Any, caplog: pytest.LogCaptureFixture) -> None:
    it = Loop()

    def breaks(features: Any) -> Any:
        raise RuntimeError("out of ideas")

    load(heuristic(breaks, "breaks-often"))
    with caplog.at_level(logging.WARNING):
        assert [it.decision.decide({"n": n}).rung for n in (8, 9, 10)] == ["default"] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "breaks-often" in caplog.text


def test_a_derived_feature_that_breaks_keeps_heuristics_out(load: Any) -> None:
    load(heuristic(always))
    assert "cannot be asked" in said(Loop(derived={"bad": lambda problem: 1 / 0}))


def test_heuristics_in_the_home_answer_by_themselves(home: Path) -> None:
    write_model(home / "heuristics" / "loop.json")
    assert Loop().loop.decide(8).source == "loop.json"


def test_places_named_by_the_settings_replace_those_in_the_home(home: Path, tmp_path: Path) -> None:
    write_model(home / "heuristics" / "home.json")
    write_model(tmp_path / "elsewhere" / "named.json")
    it = Loop()
    tw.configure(heuristics=[tmp_path / "elsewhere"])
    assert it.loop.decide(8).source == "named.json"
    tw.configure()
    assert it.loop.decide(8).source == "home.json"


def test_the_environment_names_places_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_model(tmp_path / "named.json")
    monkeypatch.setenv("TUNEWISE_HEURISTICS", str(tmp_path / "named.json"))
    tw.configure()
    assert Loop().loop.decide(8).source == "named.json"


def test_a_named_place_that_is_not_there_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TUNEWISE_HEURISTICS", str(tmp_path / "nmaed.json"))
    tw.configure()
    for _ in range(2):
        assert Loop().loop.decide(8).rung == "default"
        tw.refresh()
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told == [
        f"no heuristic of {tmp_path / 'nmaed.json'} is asked: there is no such place; correct TUNEWISE_HEURISTICS"
    ]


def test_refresh_finds_a_heuristic_that_has_come_since(home: Path) -> None:
    it = Loop()
    assert it.loop.decide(8).rung == "default"
    write_model(home / "heuristics" / "loop.json")
    assert it.loop.decide(8).rung == "default"
    tw.refresh()
    assert it.loop.decide(8).rung == "learned"


def test_dropped_heuristics_answer_no_more(load: Any) -> None:
    it = Loop()
    load(heuristic(always))
    assert it.loop.decide(8).rung == "learned"
    tw.drop_heuristics()
    assert it.loop.decide(8).rung == "default"


def write_model(path: Path, decision: str = "loop") -> None:
    from tunewise.models import Card, Columns, Leaf, Model, Number, Tree, save

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = Columns((Number("n", 1, 100),))
    save(Model(card=Card(decision=decision), choices=({"steps": 1},), columns=columns, body=Tree((Leaf((0,)),))), path)


FEATURES = st.dictionaries(
    st.sampled_from(["n", "m", "dtype"]),
    st.one_of(
        st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False), st.text("abc", max_size=5)
    ),
    max_size=3,
)


def test_whatever_is_asked_the_answer_is_legal(tmp_path: Path) -> None:
    it = Loop(near=1)
    write_model(tmp_path / "loop.json")
    tw.configure(heuristics=[tmp_path / "loop.json"])

    @settings(deadline=None)
    @given(FEATURES)
    def ask(features: dict[str, Any]) -> None:
        answer = it.decision.decide(features)
        n = features.get("n", "")
        assert answer.config in it.decision.space
        assert answer.rung == ("learned" if not isinstance(n, str) and 1 <= n <= 100 else "default")

    ask()
