"""Asking heuristics: each gives a config that may be used here, or says why not."""

from collections.abc import Mapping, Sequence

from tunewise.decision import Answer, Declaration, Environment, Feature, Rung, Subject
from tunewise.errors import InvalidProblem
from tunewise.heuristics import Heuristic
from tunewise.session import shelf

_SHOWN = 6


def answered(declaration: Declaration, subject: Subject, heuristics: Sequence[Heuristic]) -> Answer | None:
    """Return the answer of the first heuristic that has one, or None."""
    said = (consult(heuristic, declaration, subject) for heuristic in heuristics)
    return next((answer for answer in said if isinstance(answer, Answer)), None)


def why_nobody(declaration: Declaration, subject: Subject, heuristics: Sequence[Heuristic]) -> str:
    """Return in words why none of some heuristics answers."""
    said = [(h.name, consult(h, declaration, subject)) for h in heuristics]
    return "; ".join(f"{name} {reason}" for name, reason in said)


def why_nothing_learned(declaration: Declaration) -> str:
    """Return in words that there is no heuristic for a decision, and for which there are some."""
    others = shelf.decisions_known()
    if not others:
        return "no heuristic is loaded"
    named = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    return f"no heuristic knows the decision {declaration.name}; there are some for {named}"


def consult(heuristic: Heuristic, declaration: Declaration, subject: Subject) -> Answer | str:
    """Return what a heuristic answers, or why it does not, as the end of a sentence that begins with its name."""
    try:
        elsewhere = heuristic.why_elsewhere(facts_of(subject.environment))
        if elsewhere is not None:
            return elsewhere
        features: Mapping[str, Feature] = declaration.derive(subject.problem)
        config = heuristic.choose(features)
        if config is None:
            return heuristic.why_silent(features)
        whole = {**declaration.default, **config}
        reason, why = declaration.space.why_not(whole), heuristic.why(features)
    except InvalidProblem as error:
        return f"cannot be asked: {error}"
    except (Exception, SystemExit) as error:  # whatever it is, the program has a default
        said = shelf.broke(error)
        shelf.report(heuristic, f"of {heuristic.decision} {said}")
        return said
    if reason is not None:
        return f"answers what is not in the space: {reason}"
    rung: Rung = "table" if heuristic.kind == "table" else "learned"
    return Answer(declaration.space.config(whole), rung, heuristic.name, why)


def facts_of(environment: Environment) -> dict[str, object]:
    """Return all parts of an environment by name: what fences are compared with."""
    return {part.name: part.value for part in environment.parts}
