"""`tunewise explain`: where an answer comes from, rung by rung."""

from collections.abc import Sequence
from pathlib import Path

import click

from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.model_text import answers, describe, of_model, tell
from tunewise.cli.problems import Features, gather, problem_options
from tunewise.cli.runs import pair_up
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.cli.targets import find
from tunewise.models import Model, load
from tunewise.session import Explanation
from tunewise.session.ladder import show


@click.command(
    epilog=example(
        "tunewise explain isin --problem n=10000,m=100,span=1000",
        "tunewise collect isin --log-uniform n=100:5000,m=10:500,span=100:100000 --num-problems 8",
        "tunewise train --decision isin --out isin.json",
        "tunewise explain --model isin.json",
    )
)
@click.argument("target", required=False)
@problem_options
@click.option("--model", type=click.Path(path_type=Path), help="Show what a model file says instead, and why.")
@json_option
@pass_screen
def explain(
    screen: Screen, target: str | None, given: Sequence[Features], file: Path | None, model: Path | None, as_json: bool
) -> None:
    """Show where an answer comes from, or what is in a model.

    TARGET is path/to/file.py:name, package.module:name, or a built-in decision such as gemm. Every rung of the ladder
    says why it answered or declined, down to the part of the environment that differs. With --model, the model's facts
    and its tree are shown, or with problems, what it says to each and why.
    """
    if (target is None) == (model is None):
        raise click.UsageError("Name a TARGET or a --model, and not both.")
    if model is not None:
        _explain_model(screen, load(model), gather(given, file), as_json)
        return
    assert target is not None
    sound_store()
    questions = pair_up(find([target]), gather(given, file), verb="explain")
    explanations = [decision.explain(problem) for decision, problem in questions]
    if as_json:
        screen.json({"explanations": [facts.of_explanation(explanation) for explanation in explanations]})
        return
    for explanation in explanations:
        draw(screen, explanation)


def _explain_model(screen: Screen, model: Model, problems: Sequence[Features], as_json: bool) -> None:
    said = [answers(model, problem) for problem in problems]
    if as_json:
        screen.json({"model": of_model(model), "answers": said})
        return
    for one in said:
        tell(screen, one)
    if not said:
        describe(screen, model)


def draw(screen: Screen, explanation: Explanation) -> None:
    """Print an explanation: the answer, then the climb."""
    answer = explanation.answer
    screen.show(f"{explanation.decision} {show(explanation.problem)}", style="bold")
    for step in explanation.steps:
        mark = "->" if step.rung == answer.rung else "  "
        screen.show(f" {mark} {step.rung:8} {step.said}")
    screen.show(f"    answer   {show(answer.config)}")
