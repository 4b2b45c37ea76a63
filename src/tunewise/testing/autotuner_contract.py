"""The contract of every library with the switch: inherit it, say how the library is called, and the tests are there."""

import json
import logging
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import eq
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tunewise.decision import Answer
from tunewise.deploy.autotuner import Autotuner
from tunewise.errors import DeterminismWarning, InvalidSetting, MeasureWarning, Nondeterministic
from tunewise.session import Decision, configure, context, determinism
from tunewise.settings import VARIABLES

_LONGEST_S = 300

_PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[4])
from importlib import import_module
from tunewise.testing.autotuner_contract import measured
library = import_module(sys.argv[1]).LIBRARY
if sys.argv[2]:
    library.tuner.use_autotuner(True, True)
for size in json.loads(sys.argv[3]):
    library.forward(size), library.backward(size)
print(json.dumps({
    "measured": measured(library.forward_decision) + measured(library.backward_decision),
    "forward": library.tuner.is_autotuner_enabled_for_forward(),
    "backward": library.tuner.is_autotuner_enabled_for_backward(),
}))
"""


@dataclass(frozen=True)
class Library:
    """A library under test: its switch, its two decisions, and how each is called on the problem of a size.

    Each size must be another problem, not near any other. Small ones make the tests fast.
    """

    tuner: Autotuner
    forward: Callable[[int], object]
    backward: Callable[[int], object]
    forward_decision: Decision
    backward_decision: Decision
    is_same: Callable[[Any, Any], bool] = eq  # whether two results count as equal


def measured(decision: Decision) -> int:
    """Return how many measurements of a decision the store in force holds."""
    return context.current_store().info().decisions.get(decision.name, 0)


class AutotunerContract:
    """What a library's users may rely on. Subclasses name a module whose LIBRARY is a `Library`, and four sizes of it.

    The module must be importable in a process of its own. Each test has an empty home of its own (TUNEWISE_HOME).
    """

    module: str
    sizes: tuple[int, int, int, int]

    @pytest.fixture(autouse=True)
    def _as_it_came(self, tmp_path: Path) -> Iterator[None]:
        """Begin with an empty home and a switch that nobody has touched, whatever is set; leave all as it was."""
        tuner = self.library.tuner
        ours = [name for name in VARIABLES if name.startswith("TUNEWISE_")]
        with pytest.MonkeyPatch.context() as patch:
            for name in (*ours, f"{tuner.prefix}_AUTOTUNE", f"{tuner.prefix}_LOG_LEVEL"):
                patch.delenv(name, raising=False)
            patch.setenv("TUNEWISE_HOME", str(tmp_path / "autotuner"))
            configure()
            tuner.reset()
            yield
        configure()
        tuner.reset()

    @property
    def library(self) -> Library:
        """The library under test."""
        found: Library = import_module(self.module).LIBRARY
        return found

    def cost(self, call: Callable[[int], object], size: int) -> int:
        """Return how many measurements a call makes."""
        library = self.library
        decisions = (library.forward_decision, library.backward_decision)
        before = sum(map(measured, decisions))
        call(size)
        return sum(map(measured, decisions)) - before

    def run(
        self, *sizes: int, use: bool = True, variables: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[dict[str, Any], str]:
        """Call both passes in a process of its own; return what it counted, and what it wrote to stderr."""
        words = [self.module, "use" if use else "", json.dumps(sizes), json.dumps(sys.path)]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            ran = subprocess.run(
                [sys.executable, "-c", _PROGRAM, *words],
                capture_output=True,
                text=True,
                timeout=_LONGEST_S,
                check=False,
            )
        assert ran.returncode == 0, ran.stderr
        told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        return told, ran.stderr

    def test_nothing_is_tuned_before_somebody_asks(self) -> None:
        """A library comes with its switch off."""
        library = self.library
        assert not library.tuner.is_autotuner_enabled()
        assert self.cost(library.forward, self.sizes[0]) == self.cost(library.backward, self.sizes[0]) == 0

    def test_the_first_call_measures_and_the_next_does_not(self) -> None:
        """Forward only, as `use_autotuner()` says."""
        library, size = self.library, self.sizes[0]
        library.tuner.use_autotuner()
        assert self.cost(library.forward, size) > 0
        assert self.cost(library.forward, size) == 0
        assert self.cost(library.backward, size) == 0

    def test_every_new_problem_is_tuned_once(self) -> None:
        """Another size is another problem; the first one stays known."""
        library, (first, second, *_) = self.library, self.sizes
        library.tuner.use_autotuner()
        assert [self.cost(library.forward, size) > 0 for size in (first, second, first, second)] == [
            True,
            True,
            False,
            False,
        ]

    def test_both_passes_are_tuned_apart(self) -> None:
        """Forward and backward are decisions of their own."""
        library, size = self.library, self.sizes[0]
        library.tuner.use_autotuner(forward_pass=True, backward_pass=True)
        assert library.tuner.is_autotuner_enabled_for_forward()
        assert library.tuner.is_autotuner_enabled_for_backward()
        assert self.cost(library.forward, size) > 0
        assert self.cost(library.backward, size) > 0
        assert self.cost(library.forward, size) == self.cost(library.backward, size) == 0

    def test_tuning_changes_no_result(self) -> None:
        """What a call returns is what it returned before."""
        library, size = self.library, self.sizes[0]
        before = library.forward(size), library.backward(size)
        library.tuner.use_autotuner(True, True)
        assert library.is_same(library.forward(size), before[0])
        assert library.is_same(library.backward(size), before[1])

    def test_thorough_measures_the_whole_space(self) -> None:
        """After a standard effort that was stopped short, the thorough one adds what is missing, once."""
        library, size = self.library, self.sizes[0]
        library.tuner.use_autotuner(False, True, budget=1)
        library.backward(size)
        assert self.tried(library.backward_decision) == 1
        library.tuner.use_autotuner(False, True, thorough_mode_backward=True)
        library.backward(size)
        assert self.tried(library.backward_decision) == library.backward_decision.space.count()
        assert self.cost(library.backward, size) == 0

    def tried(self, decision: Decision) -> int:
        """Return how many configs of a decision were measured, over all its problems."""
        store = context.current_store()
        trials = (trial for subject in store.subjects(decision.name) for trial in store.trials(subject))
        return len({decision.space.places(trial.config) for trial in trials})

    def test_warmup_and_steps_are_taken_as_given(self) -> None:
        """10 and 20 calls to warm up, 5 and 10 that are timed; the positions are those of NATTEN."""
        library, size = self.library, self.sizes[0]
        library.tuner.use_autotuner(True, True, False, False, 10, 20, 5, 10)
        library.forward(size), library.backward(size)
        store = context.current_store()
        for decision, steps in ((library.forward_decision, 5), (library.backward_decision, 10)):
            (subject,) = store.subjects(decision.name)
            (verdict,) = store.verdicts(subject)
            assert len(verdict.challenger_s) in (0, steps)  # none where the default is the fastest
        position = library.tuner.position
        assert (position.forward.warmup_steps, position.backward.warmup_steps) == (10, 20)

    def test_too_few_steps_warn(self) -> None:
        """At least five are advised."""
        with pytest.warns(MeasureWarning, match="steps_backward=4"):
            self.library.tuner.use_autotuner(steps_backward=4)

    def test_none_leaves_a_setting_as_it_is(self) -> None:
        """What was said once stands until something else is said."""
        tuner = self.library.tuner
        tuner.use_autotuner(True, True, True, False, 7, 8, 9, 10, budget=11, accept=["near"])
        tuner.use_autotuner(None, False)
        position = tuner.position
        assert position.forward.is_on
        assert not position.backward.is_on
        assert (position.forward.thorough, position.forward.warmup_steps, position.forward.steps) == (True, 7, 9)
        assert (position.backward.steps, position.budget, position.accept) == (10, 11, frozenset({"near"}))

    @pytest.mark.parametrize("by", ["disable_autotuner", "two times False"])
    def test_off_uses_what_is_remembered_and_measures_nothing(self, by: str) -> None:
        """Known problems keep their answers; new ones get the default."""
        library, (known, new, *_) = self.library, self.sizes
        library.tuner.use_autotuner()
        library.forward(known)
        if by == "disable_autotuner":
            library.tuner.disable_autotuner()
        else:
            library.tuner.use_autotuner(False, False)
        assert not library.tuner.is_autotuner_enabled()
        assert self.cost(library.forward, known) == self.cost(library.forward, new) == 0
        assert [answer.rung for answer in self.answers(library.forward, known)] == ["memory"]

    def answers(self, call: Callable[[int], object], size: int) -> list[Answer]:
        """Return the answers that a call of the forward pass is given."""
        decision, given = self.library.forward_decision, []
        ask = decision.bound().decide

        def listen(*args: Any, **kwargs: Any) -> Answer:
            given.append(ask(*args, **kwargs))
            return given[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decision.bound(), "decide", listen)
            call(size)
        return given

    def test_a_block_tunes_and_leaves_the_switch_as_it_was(self) -> None:
        """Inside of it, and only for the thread that runs it."""
        library, size = self.library, self.sizes[0]
        seen: list[bool] = []
        with library.tuner.autotuning():
            other = threading.Thread(target=lambda: seen.append(library.tuner.is_autotuner_enabled()))
            other.start()
            other.join()
            assert self.cost(library.forward, size) > 0
        assert (seen, library.tuner.is_autotuner_enabled()) == ([False], False)

    def test_a_block_that_breaks_leaves_the_switch_as_it_was(self) -> None:
        """An error is no way to leave it on."""
        with pytest.raises(KeyError), self.library.tuner.autotuning():
            raise KeyError
        assert not self.library.tuner.is_autotuner_enabled()

    def test_the_log_tells_each_problem_each_config_and_what_won(self, caplog: pytest.LogCaptureFixture) -> None:
        """DEBUG has it all; INFO is one line a problem."""
        library, size = self.library, self.sizes[0]
        library.tuner.use_autotuner()
        with caplog.at_level(logging.DEBUG, f"{library.tuner.name}.autotuner"):
            library.forward(size)
        lines = [record.getMessage() for record in caplog.records if record.name == f"{library.tuner.name}.autotuner"]
        assert all(line.startswith(f"{library.forward_decision.name} (") for line in lines)
        costs = [line for line in lines if "proposed by" in line]
        assert len(costs) == self.tried(library.forward_decision)
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
        assert len(told) == 1
        assert "wins" in told[0] or "stays" in told[0]

    def test_the_environment_shows_the_log_by_itself(self) -> None:
        """<PREFIX>_LOG_LEVEL=debug, and nothing else set up."""
        prefix, size = self.library.tuner.prefix, self.sizes[0]
        _, log = self.run(size, variables={f"{prefix}_LOG_LEVEL": "debug"})
        assert log.count("proposed by") == self.tried(self.library.forward_decision) + self.tried(
            self.library.backward_decision
        )
        assert log.count(" INFO ") == 2

    def test_a_second_process_measures_nothing(self) -> None:
        """What one process has tuned, the next one knows."""
        first, _ = self.run(*self.sizes[:2])
        assert first["measured"] > 0
        again, _ = self.run(*self.sizes[:2])
        assert again["measured"] == first["measured"]

    @pytest.mark.parametrize(
        ("text", "forward", "backward"), [("1", True, True), ("backward", False, True), ("0", False, False)]
    )
    def test_the_environment_turns_the_switch(self, text: str, *, forward: bool, backward: bool) -> None:
        """<PREFIX>_AUTOTUNE, read at the first question."""
        told, _ = self.run(self.sizes[0], use=False, variables={f"{self.library.tuner.prefix}_AUTOTUNE": text})
        assert (told["forward"], told["backward"]) == (forward, backward)
        assert (told["measured"] > 0) == (forward or backward)

    @pytest.mark.parametrize(
        "values", [{"steps_forward": 0}, {"steps_forward": True}, {"budget": "many"}, {"seconds": -1}]
    )
    def test_nonsense_is_refused_and_changes_nothing(self, values: dict[str, Any]) -> None:
        """One clear error."""
        tuner = self.library.tuner
        before = tuner.position
        with pytest.raises(InvalidSetting, match=next(iter(values))):
            tuner.use_autotuner(**values)
        assert tuner.position == before

    def test_nothing_is_measured_where_results_must_be_deterministic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asking for it is an error that changes nothing, and a switch that is on already measures nothing."""
        library, (known, new, *_) = self.library, self.sizes
        library.tuner.use_autotuner()
        library.forward(known)
        monkeypatch.setattr(determinism, "flag", lambda: True)
        assert self.cost(library.forward, known) == self.cost(library.forward, new) == 0
        with pytest.raises(Nondeterministic):
            library.tuner.use_autotuner(True, True)
        assert not library.tuner.is_autotuner_enabled("backward")
        library.tuner.disable_autotuner()
        with pytest.raises(Nondeterministic), library.tuner.autotuning():
            pass

    def test_a_setting_makes_that_error_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """TUNEWISE_ON_DETERMINISTIC=warn; the switch stays where it is."""
        monkeypatch.setenv("TUNEWISE_ON_DETERMINISTIC", "warn")
        configure()
        monkeypatch.setattr(determinism, "flag", lambda: True)
        with pytest.warns(DeterminismWarning):
            self.library.tuner.use_autotuner()
        assert not self.library.tuner.is_autotuner_enabled()

    def test_the_process_spends_no_more_than_it_may(self) -> None:
        """Once `total_seconds` are spent, calls go on with the answer there is."""
        library, (first, second, *_) = self.library, self.sizes
        library.tuner.use_autotuner(total_seconds=math.inf)
        assert self.cost(library.forward, first) > 0
        library.tuner.use_autotuner(total_seconds=1e-9)
        assert self.cost(library.forward, second) == 0
