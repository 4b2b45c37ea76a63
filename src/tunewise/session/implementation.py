"""A function that makes its decision on every call, and can be tuned by one."""

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tunewise import settings
from tunewise.decision import Answer, Args, Config, Problem
from tunewise.decision.source import fingerprint
from tunewise.errors import InvalidDecision, MeasureWarning, MissingPart
from tunewise.measure import measurer_for
from tunewise.measure.work import Work
from tunewise.session import agreeing, arguments, calling, context, determinism, functions, seeding, shelf, traced
from tunewise.session.ladder import Explanation
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning
from tunewise.settings import MEASURING

if TYPE_CHECKING:
    from tunewise.session.decision import Decision


class Implementation:
    """A function that asks its decision for a config on every call."""

    def __init__(
        self,
        decision: "Decision",
        function: Callable[..., Any],
        *,
        build: Callable[[Config], object] | None = None,
        load: Callable[[Config], object] | None = None,
        facts: Callable[[], Mapping[str, Any]] | None = None,
        writes: tuple[int, ...] = (),
    ) -> None:
        functools.update_wrapper(self, function)  # first: attributes of the function must not replace ours
        self.decision = decision
        self._function, self._writes = function, writes
        self._build, self._load, self._facts = build, load, facts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the config the ladder gives. In `tune` and `collect` mode a new problem is measured first."""
        config = self.decide(*args, **kwargs).config
        return self._function(*args, **({**config, **kwargs} if kwargs else config))

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        """Return the implementation as a method of the object it is looked up on; of a class, as it is."""
        return self if owner is None else functions.Method(self, owner)

    def __reduce__(self) -> str:
        """Return the name it is found by: like any function, it is not copied to another process but looked up."""
        return getattr(self, "__qualname__", self.decision.name)

    def decide(self, *args: Any, **kwargs: Any) -> Answer:
        """Return the answer for these arguments; in `tune` and `collect` mode, tune a new problem first."""
        decision, features = self.decision, self._features(args, kwargs)
        answer = decision.decide(features)
        if answer.rung == "pin" or decision.mode_in_force() not in MEASURING:
            return answer
        if answer.rung == "memory" and not calling.wants_all(decision):
            return answer
        return calling.Call(self, args, kwargs, features).answer(answer)

    def tune(self, *args: Any, **given: Any) -> Tuning:
        """Tune the problem these arguments are, unless it is known; the answer is remembered for good.

        Keywords are the function's own, as in a call, and those of `Plan`: budget, seconds, seeds, heuristics,
        strategy, seed, again, wait_s, measure_all, listener. Raises InvalidDecision for one that is neither or both.
        """
        decision = self.decision
        kwargs, plan = arguments.apart(decision.name, self._function, args, given, decision.space.names)
        chosen = self._planned(plan)  # first: a keyword that nobody knows is not to be missed as an argument
        return self._tune(args, kwargs, self._features(args, kwargs), chosen)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return where the answer for these arguments comes from, rung by rung."""
        return self.decision.explain(self._features(args, kwargs))

    def task(self, *args: Any, **kwargs: Any) -> Task:
        """Return the tuning task these arguments are: what to run, how to build it and what it will be filed under."""
        return self._task(args, kwargs, self._features(args, kwargs))

    def facts(self) -> dict[str, Any]:
        """Return what must match besides the device: the fingerprint of the source, and what `facts` adds."""
        return {"source": fingerprint(self._function), **(self._facts() if self._facts else {})}

    def _features(self, args: Args, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.decision.features is None:
            raise MissingPart(f"{self.decision.name} has no features: declare features=lambda ...: {{...}} to call it")
        if not kwargs:
            return self.decision.features(*args)
        return self.decision.features(*args, **{k: v for k, v in kwargs.items() if k not in self.decision.space.names})

    def _planned(self, options: Mapping[str, Any]) -> Plan:
        """Return the plan that keywords make; raises InvalidDecision for one that plans do not have."""
        known = set(Plan.__dataclass_fields__)
        for name in options:
            if name not in known:
                there_are = ", ".join(sorted(known))
                raise InvalidDecision(f"{self.decision.name}: tune has no option {name!r}; there are {there_are}")
        plan = Plan(**{"wait_s": settings.current().wait_s, **options})
        for _, reason in seeding.usable(self.decision, plan.seeds)[1]:
            warnings.warn(f"{self.decision.name}: a seed is left out: {reason}", MeasureWarning, stacklevel=3)
        return plan

    def _tune(self, args: Args, kwargs: Mapping[str, Any], features: Mapping[str, Any], plan: Plan) -> Tuning:
        if determinism.is_on() or self.decision.mode_in_force() == "replay":
            return self._replayed(features, plan)
        task = self._task(args, kwargs, features)
        try:
            tuning = agreeing.tuned(task, plan, context.current_store(), measurer_for)
        except BaseException:
            self.decision.forget()
            raise
        if tuning.verdict is None and tuning.answer.rung == "memory":  # known already, so nothing else has changed
            self.decision._look_again(features)
        else:
            self.decision._tuned(features)
        return tuning

    def _replayed(self, features: Mapping[str, Any], plan: Plan) -> Tuning:
        """Return the recorded answer; where there is none, refuse to find one."""
        answer = self.decision.decide(features)
        if answer.rung == "default" or plan.again or plan.measure_all:
            is_on = determinism.is_on()
            reason = "PyTorch is to use deterministic algorithms" if is_on else "the mode here is replay"
            determinism.refuse(f"{self.decision.name} ({self.decision.problem(features)})", reason, stacklevel=5)
        return Tuning(answer)

    def _task(self, args: Args, kwargs: Mapping[str, Any], features: Mapping[str, Any]) -> Task:
        decision = self.decision
        functions.check_timed(decision.name, self._function)
        problem = decision.problem(features)
        work = self._work(*arguments.in_places(self._function, args, kwargs, decision.space.names), problem)
        sources = shelf.sources_for(decision)
        return Task(decision, decision.subject(problem), work, self._build, decision.hardware(), sources)

    def _work(self, args: Args, kwargs: Mapping[str, Any], problem: Problem) -> Work:
        decision, check, frame = self.decision, self.decision.check, self.decision.frame()
        # A parameter that the caller fixes for one call must not be fixed for all candidates.
        given = {name: value for name, value in kwargs.items() if name not in decision.space.names}
        more: list[Args] = []
        with functions.making_inputs(decision.name, problem):
            if decision.inputs is not None and check.is_on:
                more += [decision.inputs(problem, seed) for seed in (1, 2)]
            if check.inputs is not None and check.is_on:
                more += list(check.inputs(problem))

        def prepare(config: Config) -> Callable[..., Any]:
            if self._load is not None:
                self._load(config)
            return functools.partial(self._function, **{**config, **given})

        return Work(
            prepare=prepare,
            args=args,
            default=dict(decision.default),
            check=check,
            inputs=tuple(inputs if isinstance(inputs, tuple) else (inputs,) for inputs in more),
            writes=self._writes,
            policy=decision.policy if frame is None else frame.policy(decision.policy),
            is_prebuilt=self._build is not None and self._load is not None,
        )


traced.instead_of(Implementation.__call__, traced.call)
