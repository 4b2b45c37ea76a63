"""What Triton's autotuner measured, as trials and a verdict of ours."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Config, Failure, Outcome, Problem, Subject, Timing, Trial, Verdict
from tunewise.decision.origin import run_id
from tunewise.deploy.triton_configs import TritonConfig, key_of
from tunewise.deploy.triton_kernel import POLICY, Kernel
from tunewise.session import context

SOURCE = "triton"
_NO_TIME = "Triton gives it no time: it does not fit the device, or the compiler or a static assertion refuses it"


@dataclass(frozen=True, slots=True)
class Heard:
    """What Triton tells a listener of one autotuning run."""

    fn: Any
    key: tuple[Any, ...]
    best_config: TritonConfig
    configs_timings: Mapping[TritonConfig, Any]
    cache_hit: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run was about: the decision, the kernel, the problem and the config that is the default."""

    decision: str
    kernel: Kernel
    problem: Problem
    default: Config

    @property
    def subject(self) -> Subject:
        """What the timings are filed under, here and now."""
        return Subject(self.decision, self.problem, tuple(sorted(POLICY.key.items())), self.kernel.environment())


def keep(asked: Asked, heard: Heard) -> int:
    """Put a run's timings into the store with its verdict, and return how many trials were new."""
    subject, store = asked.subject, context.current_store()
    trials = list(trials_of(asked.kernel, heard))
    if heard.cache_hit:  # read from Triton's own cache: news only where we did not hear it when it was measured
        known = {key_of(trial.config) for trial in store.trials(subject)}
        trials = [trial for trial in trials if key_of(trial.config) not in known]
    if not trials:
        return 0
    store.add(subject, trials)
    verdict = verdict_of(asked, heard, trials)
    if verdict is not None:
        store.conclude(subject, verdict)
        store.forget_miss(subject)
    return len(trials)


def trials_of(kernel: Kernel, heard: Heard) -> Iterator[Trial]:
    """Yield one trial for each config that was timed or failed, all of one run."""
    run, now = run_id(), time.time()
    for config, timing in heard.configs_timings.items():
        yield Trial(kernel.menu.config_of(config), outcome_of(timing), SOURCE, run, now)


def outcome_of(timing: Any) -> Outcome:
    """Return Triton's milliseconds, one number or its quantiles 0.5, 0.2 and 0.8, as seconds; infinity is a Failure."""
    milliseconds = [float(number) for number in (timing if isinstance(timing, list | tuple) else [timing])]
    if not milliseconds or not all(map(math.isfinite, milliseconds)):
        return Failure("constraints", _NO_TIME)
    if min(milliseconds) <= 0:
        return Failure("runtime", f"the benchmark gives it {min(milliseconds):g} ms, which no launch takes")
    return Timing(tuple(number / 1e3 for number in milliseconds))


def verdict_of(asked: Asked, heard: Heard, trials: list[Trial]) -> Verdict | None:
    """Return how a run ended: Triton's best config against the default; None where no config ran."""
    outcomes = {key_of(trial.config): trial.outcome for trial in trials}
    best = asked.kernel.menu.config_of(heard.best_config)
    timed, default = outcomes.get(key_of(best)), outcomes.get(key_of(asked.default))
    if not isinstance(timed, Timing):
        return None
    detail = f"as Triton timed {len(trials)} of {len(asked.kernel.menu.configs)} configs, results not compared"
    whole: dict[str, Any] = {"run": trials[0].run, "source": SOURCE, "at": trials[0].at, "detail": detail}
    own = default.samples_s if isinstance(default, Timing) else ()
    if key_of(best) == key_of(asked.default):
        return Verdict("tie", asked.default, best, own, evaluations=len(trials), **whole)
    gain = own[0] / timed.samples_s[0] if own else 1.0  # both are medians
    return Verdict("win", asked.default, best, own, gain=gain, evaluations=len(trials), **whole)
