"""A model in words: what it is about, what it looks at, what it may answer, and its tree."""

from typing import Any

from tunewise.cli.screen import Screen, count, one_line
from tunewise.models import Forest, Model, Net, Number
from tunewise.models.labels import labels
from tunewise.report.outline import outline, text, way
from tunewise.session.ladder import show


def describe(screen: Screen, model: Model) -> None:
    """Print a model: its card, its features with their bounds, its choices and its tree."""
    card = model.card
    screen.show(
        f"{one_line(card.decision)}: {card.learner or 'a model'} of {card.created or 'an unknown day'}", style="bold"
    )
    drawn = outline(model)
    screen.table(("fact", "value"), [*_card(model), *_features(model), *(drawn.formulas.items() if drawn else ())])
    screen.show("")
    names = labels(model.choices)
    rows = [(str(place), name, _remark(model, place)) for place, name in enumerate(names)]
    screen.table(("choice", "config", ""), rows, right=("choice",))
    screen.show("")
    for line in (text(drawn) if drawn is not None else _size(model)).split("\n"):
        screen.show(line)


def _size(model: Model) -> str:
    if isinstance(model.body, Forest):
        trees = f"a forest of {len(model.body.trees)} trees"
        amounts = 0 if model.body.work is None else len(model.body.work.amounts)
        return f"{trees}, which adds to the time of {count(amounts, 'amount')} of work" if amounts else trees
    return "a net" if isinstance(model.body, Net) else "a tree"


def of_model(model: Model) -> dict[str, Any]:
    """Return what a model is about as plain values."""
    card = model.card
    return {
        "decision": card.decision,
        "learner": card.learner,
        "created": card.created,
        "fence": dict(card.fence),
        "fingerprint": card.fingerprint,
        "scores": dict(card.scores),
        "features": {column.name: _bounds(column) for column in model.columns.problem},
        "columns": list(model.columns.names),
        "choices": [dict(choice) for choice in model.choices],
        "default": None if model.default is None else dict(model.choices[model.default]),
    }


def _card(model: Model) -> list[tuple[str, str]]:
    card = model.card
    fence = ", ".join(f"{name}={value}" for name, value in card.fence.items())
    scores = ", ".join(f"{name} {score:.4g}" for name, score in card.scores.items())
    return [("only for", fence or "any hardware"), ("held out", scores or "not judged"), ("data", card.fingerprint)]


def _features(model: Model) -> list[tuple[str, str]]:
    said = []
    for column in model.columns.problem:
        bounds = _bounds(column)
        joint = " to " if isinstance(column, Number) else ", "
        said.append(
            (f"feature {column.name}", joint.join(f"{bound:g}" if joint == " to " else bound for bound in bounds))
        )
    return said


def _bounds(column: Any) -> list[Any]:
    return [column.low, column.high] if isinstance(column, Number) else list(column.words)


def _remark(model: Model, place: int) -> str:
    return "the default" if place == model.default else ""


def answers(model: Model, problem: Any) -> dict[str, Any]:
    """Return what a model says to a problem, and why: configs best first, none where it abstains."""
    ranking = [dict(model.choices[number]) for number in model.rank(problem)]
    return {"problem": dict(problem), "ranking": ranking, "reason": _reason(model, problem)}


def _reason(model: Model, problem: Any) -> str:
    unknown = model.columns.why_unknown(problem)
    if unknown is not None:
        return f"beyond what it was learned from: {unknown}"
    met = way(model, model.columns.known(problem) or ())
    return f"first of {count(len(model.choices), 'choice')} by its guess" if met is None else met


def tell(screen: Screen, said: dict[str, Any]) -> None:
    """Print what a model says to a problem, and why."""
    first = show(said["ranking"][0]) if said["ranking"] else "abstains: the default is the answer"
    screen.show(one_line(f"{show(said['problem'])} -> {first}"))
    screen.show(one_line(f"    {said['reason']}"))
