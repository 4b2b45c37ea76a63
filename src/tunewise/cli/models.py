"""`tunewise models`: the models that come with tunewise, what they were learned from, and whether they answer here."""

import difflib

import click

from tunewise import workloads
from tunewise.cli.model_text import describe, of_model
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.decision import Environment, Problem, detect, environment
from tunewise.errors import MissingPart, NotFound
from tunewise.heuristics.shipped import Shipped, shipped


@click.group(epilog=example("tunewise models list"))
def models() -> None:
    """Look at the models that come with tunewise."""


@models.command("list", epilog=example("tunewise models list", "tunewise models list --json"))
@json_option
@pass_screen
def list_models(screen: Screen, as_json: bool) -> None:
    """List the models, and whether each answers here."""
    rows = [_row(one) for one in shipped()]
    if as_json:
        screen.json({"models": rows})
        return
    columns = ("model", "decision", "learner", "created", "choices", "held-out regret", "here")
    cells = [
        [str(row[key]) for key in ("name", "decision", "learner", "created", "choices", "regret", "here")]
        for row in rows
    ]
    screen.table(columns, cells, right=("choices", "held-out regret"))


@models.command(epilog=example("tunewise models show isin", "tunewise models show isin --json"))
@click.argument("name")
@json_option
@pass_screen
def show(screen: Screen, name: str, as_json: bool) -> None:
    """Show a model and where its data lie.

    Its fence, the features with their bounds, the choices and the tree are shown.
    """
    found = {one.name: one for one in shipped()}
    if name not in found:
        close = difflib.get_close_matches(name, found, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(found) or 'none yet'}"
        raise NotFound(f"no model named {name!r} comes with tunewise; {hint}")
    model = found[name].model()
    if as_json:
        screen.json({"model": {**_row(found[name]), **of_model(model), "data": str(found[name].data)}})
        return
    describe(screen, model)
    screen.show("")
    screen.show(f"learned and judged from {found[name].data}")


def _row(one: Shipped) -> dict[str, object]:
    model = one.model()
    return {
        "name": one.name,
        "decision": model.card.decision,
        "learner": model.card.learner,
        "created": model.card.created,
        "choices": len(model.choices),
        "regret": model.card.scores.get("regret"),
        "here": one.why_elsewhere(_facts(model.card.decision)) or "answers",
    }


def _facts(decision: str) -> dict[str, object]:
    """Return what fences are compared with, for a decision here and now."""
    return {part.name: part.value for part in _environment(decision).parts}


def _environment(decision: str) -> Environment:
    try:
        return workloads.find(decision).subject(Problem({})).environment
    except (NotFound, MissingPart):  # its compiler or library is not here: the hardware can be told all the same
        return environment(detect())
