"""The switch by itself: names, what it governs and outranks, blocks, threads, forks, changing shapes and the log."""

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import tunewise as tw
from limits import HANG_S
from tunewise.deploy.autotuner_position import Effort, Position, prefix_of, read_position
from tunewise.errors import DuplicateDecision, InvalidDecision, InvalidSetting, Nondeterministic
from tunewise.session import background, context

QUICK = tw.Policy(isolation="none", min_sample_s=1e-5)


class Lib:
    """A library with one decision, over step counts that take their time."""

    def __init__(self, name: str = "swlib", pass_: str = "forward", **facts: Any) -> None:
        self.tuner = tw.Autotuner(name)
        facts = {"features": lambda n: {"n": n}, "check": tw.NO_CHECK, "policy": QUICK, **facts}
        self.decision = self.tuner.decision(
            f"{name}.{pass_}", pass_, space=tw.Space({"steps": [1, 30, 31, 32]}), default={"steps": 32}, **facts
        )

        @self.decision.implementation
        def run(n: int, *, steps: int) -> int:
            end = time.process_time() + steps * 2e-5
            while time.process_time() < end:
                pass
            return steps

        self.run = run

    def tried(self) -> int:
        store = context.current_store()
        trials = [trial for subject in store.subjects(self.decision.name) for trial in store.trials(subject)]
        return len({self.decision.space.places(trial.config) for trial in trials})

    def problems(self) -> int:
        return len(context.current_store().subjects(self.decision.name))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SWLIB_AUTOTUNE", "SWLIB_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    yield
    log = logging.getLogger("swlib.autotuner")
    log.handlers.clear()
    log.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("name", "prefix"), [("mylib", "MYLIB"), ("my-lib.x", "MY_LIB_X"), ("a_1", "A_1"), ("NATTEN", "NATTEN")]
)
def test_a_name_becomes_a_prefix_of_variables(name: str, prefix: str) -> None:
    assert prefix_of(name) == prefix == tw.Autotuner(name).prefix


@pytest.mark.parametrize("name", ["", " ", "my lib", "3d", "a=b", "lib\n", "größe", "a/b", "-x", None, 3])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(InvalidSetting, match="is no name of a library"):
        tw.Autotuner(name)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("0", Position()),
        (" off ", Position()),
        ("1", Position(Effort(True), Effort(True))),
        ("ON", Position(Effort(True), Effort(True))),
        ("both", Position(Effort(True), Effort(True))),
        ("forward", Position(Effort(True), Effort(False))),
        ("backward, thorough", Position(Effort(False, True), Effort(True, True))),
        ("thorough", Position(Effort(True, True), Effort(True, True))),
        ("1,background", Position(Effort(True), Effort(True), background=True)),
    ],
)
def test_the_variable_says_which_passes_and_how(text: str, position: Position) -> None:
    assert read_position("X", text, Position()) == position


@pytest.mark.parametrize("text", ["yes", "forwards", "0,forward", "2", ",", "forward thorough"])
def test_another_word_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"SWLIB_AUTOTUNE='.*' is neither 0 nor 1"):
        read_position("SWLIB_AUTOTUNE", text, Position())


@pytest.mark.parametrize(
    "values",
    [
        {"forward_pass": "yes"},
        {"backward_pass": 1},
        {"thorough_mode_forward": "no"},
        {"warmup_steps_backward": -1},
        {"warmup_steps_forward": 2.5},
        {"steps_forward": "10"},
        {"steps_backward": True},
        {"accept": ["memory"]},
        {"accept": 3},
        {"background": "yes"},
        {"budget": True},
        {"budget": 0},
        {"seconds": "soon"},
        {"total_seconds": float("nan")},
    ],
)
def test_nonsense_is_refused_by_name_and_changes_nothing(values: dict[str, Any]) -> None:
    tuner = tw.Autotuner("swlib")
    tuner.use_autotuner(True, True)
    before = tuner.position
    with pytest.raises(InvalidSetting, match=next(iter(values))):
        tuner.use_autotuner(**values)
    assert tuner.position == before


def test_a_pass_that_does_not_exist_is_refused() -> None:
    tuner = tw.Autotuner("swlib")
    with pytest.raises(InvalidSetting, match="'sideways' is not one of forward, backward"):
        tuner.is_autotuner_enabled("sideways")
    with pytest.raises(InvalidSetting):
        tuner.decision("swlib.x", "sideways", space=tw.Space({"a": [1]}), default={"a": 1})


def test_the_variables_are_read_at_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    lib = Lib()
    monkeypatch.setenv("SWLIB_AUTOTUNE", "forward")
    assert repr(lib.tuner) == "Autotuner('swlib': forward on, backward off)"
    assert (lib.run(1), lib.tried()) == (1, 4)


def test_configure_reads_the_variables_again_and_leaves_what_the_program_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, told = Lib().tuner, Lib().tuner
    assert not asked.is_autotuner_enabled()
    told.use_autotuner(False, False)
    monkeypatch.setenv("SWLIB_AUTOTUNE", "1")
    tw.configure()
    assert asked.is_autotuner_enabled("backward")
    assert not told.is_autotuner_enabled()
    told.reset()
    assert told.is_autotuner_enabled()


def test_a_variable_that_makes_no_sense_is_an_error_at_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    lib = Lib()
    monkeypatch.setenv("SWLIB_AUTOTUNE", "maybe")
    with pytest.raises(InvalidSetting, match="SWLIB_AUTOTUNE='maybe'"):
        lib.run(1)
    monkeypatch.setenv("SWLIB_AUTOTUNE", "")
    monkeypatch.setenv("SWLIB_LOG_LEVEL", "loud")
    with pytest.raises(InvalidSetting, match="SWLIB_LOG_LEVEL='loud' is not one of debug, info"):
        lib.run(1)


def test_a_process_with_anothers_rights_ignores_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWLIB_AUTOTUNE", "1")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not tw.Autotuner("swlib").is_autotuner_enabled()


def test_a_switch_nobody_touched_leaves_the_mode_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_MODE", "tune")
    tw.configure()
    lib = Lib()
    assert lib.decision.mode_in_force() == "tune"
    lib.tuner.disable_autotuner()
    assert lib.decision.mode_in_force() == "use"


@pytest.mark.parametrize("mode", ["off", "replay"])
def test_switching_tuning_off_allows_nothing_that_an_operator_forbids(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    lib = Lib()
    lib.tuner.disable_autotuner()
    assert lib.decision.mode_in_force() == "use"
    monkeypatch.setenv("TUNEWISE_MODE", mode)
    tw.configure()
    assert lib.decision.mode_in_force() == mode
    lib.tuner.use_autotuner()
    assert lib.decision.mode_in_force() == "tune"


def test_a_block_of_a_mode_outranks_the_switch() -> None:
    lib = Lib()
    lib.tuner.use_autotuner()
    with tw.mode("use"):
        assert lib.run(1) == 32
    assert lib.run(1) == 1
    with tw.mode("off"):
        assert lib.run(1) == 32


def test_a_decision_that_was_there_before_can_be_adopted() -> None:
    plain = tw.Decision("swlib.old", space=tw.Space({"steps": [1, 4]}), default={"steps": 4}, features=dict)
    bound = plain.implementation(lambda *, steps: steps)
    tuner = tw.Autotuner("swlib")
    tuner.use_autotuner(False, True)
    assert tuner.adopt(bound, "backward") is bound
    assert plain.mode_in_force() == "tune"
    assert tuner.adopt(plain, "forward") is plain
    assert plain.mode_in_force() == "use"
    with pytest.raises(InvalidDecision):
        tuner.adopt(print)  # type: ignore[type-var]


def test_a_decision_can_be_declared_with_the_switch() -> None:
    tuner = tw.Autotuner("swlib")
    forward = tw.Decision("swlib.f", space=tw.Space({"a": [1]}), default={"a": 1}, switch=tuner.forward)
    backward = tw.choice("swlib.b", {"abs": abs}, default="abs", switch=tuner.backward).decision
    tuner.use_autotuner(False, True)
    assert (forward.mode_in_force(), backward.mode_in_force()) == ("use", "tune")


def test_two_decisions_of_one_name_are_found_out() -> None:
    tuner = tw.Autotuner("swlib")
    first = tuner.decision("swlib.twice", space=tw.Space({"a": [1]}), default={"a": 1})
    with pytest.raises(DuplicateDecision):
        tuner.decision("swlib.twice", space=tw.Space({"b": [1]}), default={"b": 1})
    assert first.name == "swlib.twice"


def test_turning_the_switch_makes_its_decisions_look_again_and_no_others() -> None:
    lib, other = Lib(), Lib("other_lib")
    for one in (lib, other):
        one.tuner.use_autotuner()
        one.run(1)
        one.tuner.disable_autotuner()
        one.run(1)
    assert lib.decision._own.hot.answers
    assert other.decision._own.hot.answers
    lib.tuner.use_autotuner()
    assert not lib.decision._own.hot.answers
    assert other.decision._own.hot.answers


def test_a_switch_keeps_no_decision_alive() -> None:
    lib = Lib()
    tuner = lib.tuner
    assert len(tuner._governed()) == 1
    del lib.decision, lib.run
    gc.collect()
    assert tuner._governed() == []


def test_blocks_nest_and_only_change_what_they_say() -> None:
    tuner = tw.Autotuner("swlib")
    tuner.use_autotuner(True, False, budget=7)
    with tuner.autotuning(False, True, steps_backward=9):
        assert (tuner.is_autotuner_enabled("forward"), tuner.position.budget) == (False, 7)
        with tuner.autotuning(None, None, budget=5):
            assert (tuner.position.backward.steps, tuner.position.budget) == (9, 5)
        assert tuner.position.budget == 7
    assert (tuner.is_autotuner_enabled("forward"), tuner.is_autotuner_enabled("backward")) == (True, False)
    assert tuner.position.backward.steps is None


def test_turning_the_switch_inside_a_block_takes_nothing_of_the_block_outside() -> None:
    tuner = tw.Autotuner("swlib")
    with tuner.autotuning(True, True, steps_backward=9, budget=5):
        tuner.use_autotuner(None, None, steps_forward=7)
        assert (tuner.position.budget, tuner.position.forward.steps) == (5, None)
    assert not tuner.is_autotuner_enabled()
    assert (tuner.position.budget, tuner.position.forward.steps, tuner.position.backward.steps) == (40, 7, None)


def test_the_way_out_that_is_named_is_one_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWLIB_AUTOTUNE", "1")
    tuner = tw.Autotuner("swlib")
    assert tuner.is_autotuner_enabled()
    assert tuner._way_out() == "SWLIB_AUTOTUNE=0 tunes nothing"
    tuner.use_autotuner()  # outranks the variable
    assert tuner._way_out() == "disable_autotuner() tunes nothing"


def test_the_switch_holds_for_all_threads_and_a_problem_is_tuned_once() -> None:
    lib = Lib(policy=tw.Policy(min_sample_s=1e-5))
    lib.tuner.use_autotuner()
    started: list[str] = []
    log = logging.getLogger("swlib.autotuner")
    log.setLevel(logging.DEBUG)
    handler = logging.Handler()
    handler.emit = lambda record: started.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(lib.run(1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert answers == [1] * 4
    assert len([line for line in started if "tuning, at most 4 configs" in line]) == 1
    assert lib.problems() == 1


def test_a_forked_child_stands_as_its_parent_and_turns_alone() -> None:
    lib = Lib()
    lib.tuner.use_autotuner()
    child = os.fork()
    if child == 0:
        is_on = lib.tuner.is_autotuner_enabled()
        lib.tuner.disable_autotuner()
        os._exit(0 if is_on and not lib.tuner.is_autotuner_enabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lib.tuner.is_autotuner_enabled()


def test_two_libraries_of_one_prefix_have_switches_of_their_own_and_one_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = tw.Autotuner("sw-lib"), tw.Autotuner("sw_lib")
    one.use_autotuner()
    assert not other.is_autotuner_enabled()
    monkeypatch.setenv("SW_LIB_AUTOTUNE", "backward")
    tw.configure()
    assert (one.is_autotuner_enabled("forward"), other.is_autotuner_enabled("backward")) == (True, True)


def test_steps_are_as_many_as_the_switch_says_and_file_under_the_same_problem() -> None:
    lib = Lib()
    lib.tuner.use_autotuner(warmup_steps_forward=10, steps_forward=6)
    assert lib.run(1) == 1
    store = context.current_store()
    (subject,) = store.subjects(lib.decision.name)
    (verdict,) = store.verdicts(subject)
    assert len(verdict.challenger_s) == 6
    lib.tuner.reset()
    assert lib.run(1) == 1


def test_the_standard_effort_is_bounded_and_the_thorough_one_is_not() -> None:
    tuner = tw.Autotuner("swlib")
    large = tw.Space({"a": list(range(10)), "b": list(range(10))})
    wide = tuner.decision(
        "swlib.wide",
        space=large,
        default={"a": 0, "b": 0},
        features=lambda n: {"n": n},
        check=tw.NO_CHECK,
        policy=tw.Policy(isolation="none", clock="wall", min_sample_s=1e-5),
    )
    run = wide.implementation(lambda n, *, a, b: n)
    tuner.use_autotuner()
    run(1)
    store = context.current_store()
    (subject,) = store.subjects(wide.name)
    assert len({wide.space.places(trial.config) for trial in store.trials(subject)}) == 40
    tuner.use_autotuner(thorough_mode_forward=True)
    run(1)
    assert len({wide.space.places(trial.config) for trial in store.trials(subject)}) == 100


def test_a_library_has_a_standard_effort_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = tw.Autotuner("swlib", budget=12, seconds=9, accept="near")
    monkeypatch.setenv("SWLIB_AUTOTUNE", "1")
    assert (tuner.position.budget, tuner.position.seconds, tuner.position.accept) == (12, 9, {"near"})
    tuner.use_autotuner(budget=3)
    assert (tuner.position.budget, tuner.position.seconds) == (3, 9)
    tuner.reset()
    assert tuner.position.budget == 12
    with pytest.raises(InvalidSetting, match="budget=0"):
        tw.Autotuner("swlib", budget=0)


def test_a_near_answer_stands_in_where_it_is_accepted() -> None:
    lib = Lib(near=2.0)
    lib.tuner.use_autotuner(accept="near")
    assert [lib.run(n) for n in (100, 150, 1000)] == [1, 1, 1]
    assert lib.problems() == 2
    lib.tuner.use_autotuner(accept=[])
    lib.run(150)
    assert lib.problems() == 3


def test_buckets_bound_how_many_problems_there_are() -> None:
    lib = Lib(buckets={"n": "pow2"})
    lib.tuner.use_autotuner()
    assert {lib.run(n) for n in range(9, 65)} == {1}
    assert lib.problems() == 3


def test_in_the_background_calls_go_on_with_the_default_and_the_winner_is_picked_up() -> None:
    lib = Lib(policy=tw.Policy(min_sample_s=1e-5))
    lib.tuner.use_autotuner(background=True)
    assert lib.run(1) == 32
    assert background.wait(HANG_S)
    assert lib.run(1) == 1
    assert lib.tried() == 4


def test_a_block_in_the_background_is_tuned_as_the_block_says() -> None:
    lib = Lib(policy=tw.Policy(min_sample_s=1e-5))
    with lib.tuner.autotuning(background=True, steps_forward=7):
        lib.run(1)
    assert background.wait(HANG_S)
    store = context.current_store()
    (subject,) = store.subjects(lib.decision.name)
    assert [len(verdict.challenger_s) for verdict in store.verdicts(subject)] == [7]
    assert lib.run(1) == 1


def test_decisions_that_a_candidate_makes_are_not_tuned_meanwhile() -> None:
    inner = Lib()
    outer = inner.tuner.decision(
        "swlib.outer", space=tw.Space({"a": [1, 2]}), default={"a": 1}, features=dict, policy=QUICK
    )
    run = outer.implementation(lambda *, a: inner.run(1))
    inner.tuner.use_autotuner(budget=2)
    run.decide()
    assert inner.problems() == 0


@pytest.mark.parametrize("ways", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_program_with_its_own_ways_for_ctrl_c_keeps_them(ways: signal.Handlers) -> None:
    tuner, seen = tw.Autotuner("swlib"), set()

    def look(n: int) -> int:
        seen.add(signal.getsignal(signal.SIGINT))
        return n

    run = tuner.choice("swlib.look", {"one": look}, default="one", features=lambda n: {"n": n}, policy=QUICK)
    tuner.use_autotuner()
    before = signal.signal(signal.SIGINT, ways)
    try:
        run(1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == {ways}


def test_a_failed_config_is_in_the_log_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    tuner = tw.Autotuner("swlib")

    def broken(n: int) -> int:
        raise ValueError("not\nfor me")

    run = tuner.choice("swlib.some", {"fine": abs, "broken": broken}, default="fine", features=lambda n: {"n": n})
    tuner.use_autotuner()
    with caplog.at_level(logging.DEBUG, "swlib.autotuner"):
        run(-1)
    assert "choice=broken: failed, runtime: ValueError: not\\nfor me" in caplog.text
    assert "the default choice=fine stays, nothing beats it; 2 configs in " in caplog.text


def test_logging_of_the_programs_own_is_used_instead_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWLIB_LOG_LEVEL", "info")
    lib, second = Lib(), tw.Autotuner("swlib")
    second.is_autotuner_enabled()  # a second switch of the name adds no second handler
    lib.tuner.use_autotuner()
    lib.run(1)
    assert capsys.readouterr().err == ""  # pytest's own handlers hear it
    assert len(logging.getLogger("swlib.autotuner").handlers) == 1


def test_pytorch_says_when_results_must_be_deterministic() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    lib = Lib()
    lib.tuner.use_autotuner()
    torch.use_deterministic_algorithms(True)
    try:
        assert lib.run(1) == 32
        with pytest.raises(Nondeterministic, match="what swlib is asked is not tuned: PyTorch is to use determ"):
            lib.tuner.use_autotuner(True, True)
        lib.tuner.use_autotuner(False, False)
    finally:
        torch.use_deterministic_algorithms(False)
    assert lib.problems() == 0
    lib.tuner.use_autotuner()
    assert lib.run(1) == 1
