"""Where Inductor chooses between kernels: our answer, our measurement, or its own way."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunewise.decision import Answer, Config, canonical
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.listening import Heard, tell
from tunewise.deploy.inductor.measuring import Kitchen, measured
from tunewise.deploy.inductor.menus import Menu, menu_of
from tunewise.deploy.inductor.problems import Asked, ProductDecision, decision_for, is_offered
from tunewise.deploy.inductor.steering import Steering, active, guarded
from tunewise.session import context, shelf

UNSURE = ("default",)  # nobody knows anything: Inductor goes its own way
Choices = Sequence[Any]


def install() -> None:
    """Wrap Inductor's selection, once: harmless to call again, and nothing changes where no steering is active."""
    cache = torchside.need("torch._inductor.select_algorithm", "AlgorithmSelectorCache")
    if getattr(cache.__call__, "_is_tunewise", False):
        return
    cache.__call__ = _steered(cache.__call__)


def _steered(select: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(select)
    def steered_call(
        self: Any, name: str, choices: Choices, input_nodes: Any, layout: Any, *args: Any, **kwargs: Any
    ) -> Any:
        steering = active()
        if steering is None or layout.device.type != "cpu":  # on a GPU configs are steered before they are choices
            return select(self, name, choices, input_nodes, layout, *args, **kwargs)
        generators = args[0] if args else kwargs.get("input_gen_fns")
        asked = Asked(name, input_nodes, layout)
        taken = guarded(
            f"torch.{name}",
            lambda: chosen(asked, choices, generators, steering),
            lambda: without_us(choices, steering),
        )
        return select(self, name, list(taken), input_nodes, layout, *args, **kwargs)

    steered_call._is_tunewise = True  # type: ignore[attr-defined]
    return steered_call


def chosen(asked: Asked, choices: Choices, generators: Mapping[int, Any] | None, steering: Steering) -> Choices:
    """Return the choices that Inductor goes on with: one is taken as it is, several are timed by Inductor."""
    menu = menu_of(choices)
    if asked.op is None or menu is None:
        return without_us(choices, steering)
    decision = decision_for(asked.op)
    mode = steering.mode_of(decision)
    if mode == "off":
        return without_us(choices, steering)
    features = asked.features(menu.extern.name)
    answer, count = _answer(decision, features, mode), 0
    if mode in ("tune", "collect") and not _is_enough(answer, mode):
        tuning = measured(decision, features, Kitchen(asked, menu, generators), steering)
        answer, count = tuning.answer, tuning.measured
    offers = functools.partial(is_offered, features=features, variants=steering.variants)
    if not offers(answer.config) and answer.rung != "pin":
        answer = _next_best(decision, features, offers)
    tell(Heard(decision.name, decision.problem(features), answer, count))
    if answer.rung in UNSURE and mode != "replay":
        return without_us(choices, steering)
    if steering.top_k > 1 and mode == "use" and answer.rung == "learned":
        return _several(decision, menu, _ranked(decision, features, offers)[: steering.top_k])
    return [menu.choice(answer.config)]


def without_us(choices: Choices, steering: Steering) -> Choices:
    """Return what Inductor would choose from if we had not asked it for candidates: see `wants_autotuning`."""
    is_custom = any(getattr(choice, "gm", None) is not None for choice in choices)  # offered whatever we ask for
    if steering.wants_autotuning or is_custom:
        return choices
    return [choice for choice in choices if torchside.is_extern(choice)][:1] or choices


def _answer(decision: ProductDecision, features: Mapping[str, Any], mode: Any) -> Answer:
    # A mode given for one block must not be kept as the answer for all: `decide` keeps none where a mode is given.
    return decision.decide(features, mode=None if mode == decision.mode_in_force() else mode)


def _is_enough(answer: Answer, mode: str) -> bool:
    frame = context.FRAME.get()
    is_accepted = frame is not None and answer.rung in frame.accept
    return answer.rung == "pin" or (mode == "tune" and (answer.rung == "memory" or is_accepted))


def _several(decision: ProductDecision, menu: Menu, ranked: Sequence[Config]) -> Choices:
    """Return the best few by the first model that ranks them, and the library's kernel."""
    wanted = {canonical.encode(dict(config)): config for config in (*ranked, decision.default)}
    return [menu.choice(config) for config in wanted.values()]


def _next_best(decision: ProductDecision, features: Mapping[str, Any], offers: Callable[[Config], bool]) -> Answer:
    """Return the best that a model names of what is offered here, or the default where none does."""
    for config in _ranked(decision, features, offers):
        return Answer(config, "learned", "a model", "the best it ranks of what is offered here")
    said = "what is known is a register block that is left out here"
    return Answer(decision.default, "default", "declaration", said)


def _ranked(decision: ProductDecision, features: Mapping[str, Any], offers: Callable[[Config], bool]) -> list[Config]:
    """Return configs by the first model in force that ranks them, best first; only what is offered."""
    problem = decision.problem(features)
    facts = {part.name: part.value for part in decision.environment.parts}
    for heuristic in shelf.heuristics_for(decision.name):
        if heuristic.why_elsewhere(facts) is None and not heuristic.only_seeds:
            ranked = heuristic.rank(dict(decision.derive(problem)))
            if ranked:
                return [config for config in ranked if offers(config)]
    return []
