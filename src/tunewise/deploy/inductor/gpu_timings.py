"""What Inductor timed of a product on a GPU, as trials and a verdict of ours."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tunewise.decision import Config, Failure, Outcome, Subject, Timing, Trial, Verdict
from tunewise.decision.origin import run_id
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.gpu_choices import is_for_a_hint
from tunewise.deploy.inductor.gpu_problems import GpuDecision, decision_for, hardware_of, problem_of
from tunewise.deploy.inductor.steering import Steering, active
from tunewise.deploy.triton_configs import key_of
from tunewise.eventlog import logger
from tunewise.formats.inductortable import config_of
from tunewise.formats.operands import OPS
from tunewise.session import context, evidence

SOURCE = "inductor"
Found = dict[str, tuple[Config, Outcome]]  # what became of each config, by its key
_KEEPING = ("tune", "collect")
_log = logger(__name__)
_reported: set[str] = set()
_NO_TIME = "Inductor gives it no time: it does not compile, or needs more than the device has"


def install() -> None:
    """Let Inductor tell us what it times, where there is a GPU; harmless to call again, also once others cleared it."""
    torch = torchside.need("torch")
    if not torch.cuda.is_available():
        return
    cache = torchside.need("torch._inductor.select_algorithm", "get_algorithm_selector_cache")()
    if save not in cache.feedback_saver_fns:
        cache.add_feedback_saver(save)


def save(*args: Any, **_: Any) -> None:
    """Keep what Inductor timed while something steers in `tune` or `collect` mode: a function for `add_feedback_saver`.

    It takes whatever arguments the installed torch gives, and raises nothing.
    """
    steering, name = active(), str(args[1]) if len(args) > 1 else ""
    if steering is None or name not in OPS or len(args) < 3:
        return
    try:
        keep(steering, name, args[2], args[0])
    except Exception as error:  # it would end the user's compile
        if name not in _reported:
            _reported.add(name)
            _log.warning("what Inductor timed of %s is not kept: %s: %s", name, type(error).__name__, error)


def keep(steering: Steering, op: str, nodes: Sequence[Any], timings: Mapping[Any, float]) -> int:
    """Put the milliseconds of an op's choices into the store with their verdict; return how many trials were new.

    Nothing is kept of what runs elsewhere than on a GPU, and nothing that the store has: Inductor tells what it reads
    from its cache as if it had just been timed. And where memory has answered, a few configs timed once more conclude
    nothing.
    """
    device = nodes[-1].get_device()
    if device is None or device.type != "cuda":
        return 0
    decision = decision_for(op, hardware_of(device))
    mode = steering.mode_of(decision)
    if mode not in _KEEPING:
        return 0
    subject, found = decision.subject(problem_of(op, nodes)), outcomes_of(timings)
    is_answered = mode == "tune" and any(evidence.answering(context.current_store().verdicts(subject)))
    new = _new(subject, found)
    if not new or (is_answered and found.keys() <= _tried(subject)):
        return 0
    _file(decision, subject, new, verdict_of(decision, found, timings, new))
    return len(new)


def _new(subject: Subject, found: Found) -> list[Trial]:
    """Return what was found and is not in the store, as the trials of one run."""
    known = {(key_of(trial.config), trial.outcome) for trial in context.current_store().trials(subject)}
    run, now = run_id(), time.time()
    return [Trial(config, out, SOURCE, run, now) for key, (config, out) in found.items() if (key, out) not in known]


def _tried(subject: Subject) -> set[str]:
    """Return the keys of the configs that this home has tried."""
    return {key_of(trial.config) for trial in context.current_store().trials(subject) if trial.origin == "own"}


def _file(decision: GpuDecision, subject: Subject, trials: Sequence[Trial], verdict: Verdict | None) -> None:
    store = context.current_store()
    store.add(subject, trials)
    if verdict is not None:
        store.conclude(subject, verdict)
        store.forget_miss(subject)
    decision.forget()  # what was answered before: the store knows more now


def outcomes_of(timings: Mapping[Any, float]) -> Found:
    """Return what became of each config, by its key; where several choices are one config to us, of the fastest."""
    found: Found = {}
    for choice, milliseconds in timings.items():
        config = config_of_choice(choice)
        if config is None:
            continue
        outcome, before = _outcome(milliseconds), found.get(key_of(config), (config, None))[1]
        if before is None or _cost(outcome) < _cost(before):
            found[key_of(config)] = config, outcome
    return found


def config_of_choice(choice: Any) -> Config | None:
    """Return a choice of Inductor as a config of ours, or None for what we have no word for, such as CUTLASS."""
    told = getattr(choice, "annotations", {}).get("ktc")  # its name holds a counter, and tells nothing
    return None if told is None or is_for_a_hint(told) else config_of(told.template.uid, told.params.to_kwargs())


def verdict_of(
    decision: GpuDecision, found: Found, timings: Mapping[Any, float], trials: Sequence[Trial]
) -> Verdict | None:
    """Return how a run ended: the fastest config against ATen; None where no config ran, or another choice was faster.

    Then memory stays silent, and Inductor chooses as it did.
    """
    config, best = min(found.values(), key=lambda pair: _cost(pair[1]))
    others = [_cost(_outcome(ms)) for choice, ms in timings.items() if config_of_choice(choice) is None]
    if not isinstance(best, Timing) or min(others, default=math.inf) < best.time_s:
        return None
    default = found.get(key_of(decision.default), (None, None))[1]
    own = default.samples_s if isinstance(default, Timing) else ()
    detail = f"as Inductor timed {len(found)} configs, results not compared"
    whole: dict[str, Any] = {"run": trials[0].run, "source": SOURCE, "at": trials[0].at, "detail": detail}
    if key_of(config) == key_of(decision.default):
        return Verdict("tie", dict(decision.default), config, own, evaluations=len(trials), **whole)
    gain = own[0] / best.samples_s[0] if own else 1.0
    return Verdict("win", dict(decision.default), config, own, gain=gain, evaluations=len(trials), **whole)


def _outcome(milliseconds: float) -> Outcome:
    number = float(milliseconds)
    if not math.isfinite(number):
        return Failure("compile", _NO_TIME)
    if number <= 0:
        return Failure("runtime", f"the benchmark gives it {number:g} ms, which no launch takes")
    return Timing((number / 1e3,))


def _cost(outcome: Outcome) -> float:
    return outcome.time_s if isinstance(outcome, Timing) else math.inf
