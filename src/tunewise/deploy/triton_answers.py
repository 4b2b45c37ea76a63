"""Which of a kernel's configs Triton's autotuner gets to see: one is launched unmeasured, several are timed."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Answer, Config, Failure, Hardware, Problem, Subject
from tunewise.decision.devices import completed
from tunewise.deploy.triton_configs import TritonConfig, key_of
from tunewise.deploy.triton_harvest import ask_about_runs, listen, report
from tunewise.deploy.triton_kernel import POLICY, Kernel, device, is_autotuner, kernel_of
from tunewise.deploy.triton_shortlist import by_author, has_failed, shortlist
from tunewise.deploy.triton_trials import Asked, Heard, outcome_of
from tunewise.errors import InvalidConfig, InvalidDecision, InvalidSetting, MissingPart
from tunewise.session import Decision, agreeing, context

Configs = list[TritonConfig]
UNSURE = ("promoted", "near", "default")  # rungs that never saw a timing of the problem or its like: worth measuring
_MAX_ASKED = 1000  # questions whose run was never heard of
_WITHOUT_US = "it is tuned as if tunewise were not there"


@dataclass(frozen=True, eq=False)
class KernelDecision(Decision):
    """The decision which config a Triton kernel is launched with."""

    kernel: Kernel = field(kw_only=True)

    def hardware(self) -> Hardware:
        """Return the device Triton launches on now, with what the table of devices knows of it."""
        return completed(device())

    def subject(self, problem: Problem) -> Subject:
        """Return what a timing of this problem, on the device Triton uses now, is about."""
        return self.about(problem).subject

    def about(self, problem: Problem) -> Asked:
        """Return what a run on this problem is about."""
        return Asked(self.name, self.kernel, problem, dict(self.default))


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about a kernel's answers."""

    name: str | None = None
    top_k: int = 5
    default: Mapping[str, Any] | None = None
    features: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)  # further facts of the decision, such as `derived`

    def __post_init__(self) -> None:
        if isinstance(self.top_k, bool) or not isinstance(self.top_k, int) or self.top_k < 1:
            raise InvalidSetting(f"top_k={self.top_k!r} is not a whole number of at least 1")

    def decision_of(self, kernel: Kernel) -> KernelDecision:
        """Return the decision about a kernel; raises InvalidDecision where it cannot be declared."""
        return KernelDecision(
            self.name or kernel.name,
            space=kernel.menu.space,
            default=kernel.menu.default(self.default),
            kernel=kernel,
            **{"policy": POLICY, "backend": "triton", **self.declared},
        )


class Answers:
    """An `early_config_prune` for Triton's autotuner that asks tunewise after the author's own pruning."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._bench: Bench | None = None
        self._is_lost = False
        self._before: Callable[..., Configs] | None = None

    @property
    def decision(self) -> KernelDecision | None:
        """The decision this answers for; None before it was attached or asked."""
        return None if self._bench is None else self._bench.decision

    def attach(self, autotuner: Any) -> None:
        """Answer for an autotuner; its own `early_config_prune`, if it has one, is asked first."""
        before = getattr(autotuner, "early_config_prune", None)
        if isinstance(before, Answers):
            raise InvalidDecision(f"{kernel_of(autotuner).name} is answered for twice: one decorator is enough")
        self._bench = Bench(autotuner, self.options)
        self._before, autotuner.early_config_prune = before, self

    def __call__(self, configs: Configs, named_args: Mapping[str, Any], **kwargs: Any) -> Configs:
        """Return the configs to launch (one) or to time (several); those of the author where ours fails."""
        given = configs if self._before is None else self._before(configs, named_args, **kwargs)
        if _is_traced():
            return given
        bench = self._bench or self._found(sys._getframe(1).f_locals.get("self"))
        if bench is None or not given:
            return given
        try:
            return bench.choose(given, {**named_args, **kwargs})
        except Exception as error:  # the user's kernel goes on, whatever is wrong with us
            report(bench.decision.name, _WITHOUT_US, error)
            return given if agreeing.agreement() is None else [bench.default(given)]

    def _found(self, caller: Any) -> "Bench | None":
        """Take the autotuner that calls us for ours: who passes us to `prune_configs_by` has none to attach."""
        if self._is_lost:
            return None
        try:
            if not is_autotuner(caller):
                raise InvalidDecision("nobody can tell which kernel it is; decorate it with tuned() instead")
            self._bench = Bench(caller, self.options)
        except Exception as error:  # as above
            self._is_lost = True
            report(self.options.name or "a kernel", _WITHOUT_US, error)
        return self._bench


def _is_traced() -> bool:
    """Return whether torch.compile is reading this code instead of running it: it tunes the kernel itself, later."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)  # a torch that is half imported has none
    return compiler is not None and bool(compiler.is_compiling())


class Bench:
    """One autotuner and the decision about its kernel: says what is to be timed, and files what was."""

    def __init__(self, autotuner: Any, options: Options) -> None:
        self.decision = options.decision_of(kernel_of(autotuner))
        self._autotuner, self._options = autotuner, options
        self._author_keeps = getattr(autotuner, "configs_top_k", None)  # of what the author's performance model ranks
        self._asked: dict[tuple[Any, ...], tuple[Problem, Configs]] = {}  # by Triton's key; what it may launch
        ask_about_runs(self)

    def choose(self, given: Configs, args: Mapping[str, Any]) -> Configs:
        """Return which of the configs Triton is to see for a call with these arguments."""
        decision = self.decision
        self._let_triton_keep(self._author_keeps)
        if decision.mode_in_force() == "off":
            return given
        problem = decision.problem((self._options.features or decision.kernel.problem)(args))
        chosen = self._chosen(given, problem, args)
        is_heard = len(chosen) == 1 or self._expect(decision.kernel.key(args), problem, given)
        if is_heard or agreeing.agreement() is None:
            return chosen
        return [self._one(given, decision.decide(problem, mode="use").config)]  # ranks could not agree on a winner

    def recognise(self, heard: Heard) -> Asked | None:
        """Return what a run was about if it was ours to choose for."""
        if self.decision.kernel.jit is not heard.fn:
            return None
        asked = self._asked.get(tuple(heard.key))
        return None if asked is None else self.decision.about(asked[0])

    def kept(self, asked: Asked) -> None:
        """Forget what was answered before: the store knows more now."""
        self.decision.forget()
        context.current_store().forget_miss(asked.subject)

    def settle(self, asked: Asked, heard: Heard) -> None:
        """Have Triton launch what stands for all ranks of a job: the first winner that was published."""
        key = tuple(heard.key)
        _, given = self._asked.pop(key)
        if agreeing.agreement() is None:
            return
        question, best = self.decision._question(asked.problem), asked.kernel.menu.config_of(heard.best_config)
        if isinstance(outcome_of(heard.configs_timings[heard.best_config]), Failure):  # nothing ran here
            stands = agreeing.standing(question)
        else:
            won = Answer(best, "memory", "triton", "the fastest that Triton timed")
            stands = agreeing.agreed(question, won)
        if stands is not None and key_of(stands.config) != key_of(best):
            self._autotuner.cache[key] = self._one(given, stands.config)

    def default(self, given: Configs) -> TritonConfig:
        """Return the default, or the first config where the author's pruning dropped it."""
        offered = self.decision.kernel.menu.offered(given)
        return offered.get(key_of(self.decision.default), given[0])

    def _one(self, given: Configs, config: Config) -> TritonConfig:
        """Return a config of ours as one of Triton's; the default where the author's pruning dropped it."""
        found = self.decision.kernel.menu.offered(given).get(key_of(config))
        if found is None and agreeing.agreement() is not None:
            error = InvalidConfig("early_config_prune drops it on this rank")
            report(self.decision.name, "what stands for all ranks is not launched", error)
        return found or self.default(given)

    def _chosen(self, given: Configs, problem: Problem, args: Mapping[str, Any]) -> Configs:
        decision, mode, most = self.decision, self.decision.mode_in_force(), self._options.top_k
        if mode == "collect":
            return given
        if mode == "replay" or (mode == "use" and most == 1):
            return [self._one(given, decision.decide(problem).config)]
        offered, question = decision.kernel.menu.offered(given), decision._question(problem)
        answer, subject = self._answer(problem), question.subject
        stands = agreeing.standing(question) if answer.rung != "pin" else None
        if stands is not None:
            return [self._one(given, stands.config)]
        if key_of(answer.config) in offered and self._is_enough(answer, subject, offered):
            return [self._one(given, agreeing.agreed(question, answer).config)]
        if mode == "tune":
            return given
        ranked = decision.kernel.menu.offered(by_author(self._autotuner, given, args))
        few = shortlist(decision, subject, answer, ranked, most)
        self._let_triton_keep(len(few))  # the author's model has had its say: Triton would ask it again of these
        if len(few) == 1:  # Triton launches it unmeasured, and tells nobody
            only = Answer(decision.kernel.menu.config_of(few[0]), "default", "triton", "all others failed here")
            return [self._one(given, agreeing.agreed(question, only).config)]
        return few

    def _answer(self, problem: Problem) -> Answer:
        """Return what is known here. Ranks ask as in `tune`: there, what none of them has timed is not published."""
        return self.decision.decide(problem, mode=None if agreeing.agreement() is None else "tune")

    def _let_triton_keep(self, most: float | None) -> None:
        if getattr(self._autotuner, "perf_model", None) is not None:
            self._autotuner.configs_top_k = most

    def _is_enough(self, answer: Answer, subject: Subject, offered: Mapping[str, TritonConfig]) -> bool:
        """Return whether an answer needs no measurement in the mode in force."""
        if answer.rung == "pin":
            return True
        if self.decision.mode_in_force() == "tune":
            frame, trials = context.FRAME.get(), context.current_store().trials(subject)
            is_accepted = frame is not None and answer.rung in frame.accept
            return is_accepted or (answer.rung == "memory" and offered.keys() <= {key_of(t.config) for t in trials})
        is_known = answer.rung == "memory"
        return is_known or (answer.rung not in UNSURE and not has_failed(answer.config, subject))

    def _expect(self, key: tuple[Any, ...], problem: Problem, given: Configs) -> bool:
        """Remember what Triton is about to measure: its listener is told the key, and not what is in it.

        Return False where Triton tells no listener.
        """
        try:
            listen()
        except MissingPart as error:  # too old a Triton: what it measures stays its own, and the answers stand
            report(self.decision.name, "its timings are not kept", error)
            return False
        if len(self._asked) >= _MAX_ASKED:
            self._asked.clear()
        self._asked[key] = problem, given
        return True
