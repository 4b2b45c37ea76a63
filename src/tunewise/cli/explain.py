"""`tunewise explain`: where an answer comes from, rung by rung."""

from collections.abc import Sequence
from pathlib import Path

import click

from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.problems import Features, gather, problem_options
from tunewise.cli.runs import pair_up
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.cli.targets import find
from tunewise.session import Explanation
from tunewise.session.ladder import show


@click.command(epilog=example("tunewise explain isin --problem n=10000,m=100,span=1000"))
@click.argument("target")
@problem_options
@json_option
@pass_screen
def explain(screen: Screen, target: str, given: Sequence[Features], file: Path | None, as_json: bool) -> None:
    """Show where an answer comes from.

    TARGET is path/to/file.py:name, package.module:name, or a built-in decision such as gemm. Every rung of the ladder
    says why it answered or declined, down to the part of the environment that differs.
    """
    sound_store()
    questions = pair_up(find([target]), gather(given, file), verb="explain")
    explanations = [decision.explain(problem) for decision, problem in questions]
    if as_json:
        screen.json({"explanations": [facts.of_explanation(explanation) for explanation in explanations]})
        return
    for explanation in explanations:
        draw(screen, explanation)


def draw(screen: Screen, explanation: Explanation) -> None:
    """Print an explanation: the answer, then the climb."""
    answer = explanation.answer
    screen.show(f"{explanation.decision} {show(explanation.problem)}", style="bold")
    for step in explanation.steps:
        mark = "->" if step.rung == answer.rung else "  "
        screen.show(f" {mark} {step.rung:8} {step.said}")
    screen.show(f"    answer   {show(answer.config)}")
