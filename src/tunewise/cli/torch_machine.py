"""The machine as measuring products needs it: torch is there, few threads, and no matrix units that kill."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from tunewise import settings
from tunewise.cli.home import with_variable
from tunewise.cli.screen import Screen
from tunewise.deploy.inductor import amx, torchside


def threads_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb `--threads`."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Threads of the compiled code; what is measured with some holds for as many.",
    )(verb)


@contextmanager
def ready(screen: Screen, threads: int) -> Iterator[None]:
    """Let torch run with so many threads inside the block; raises MissingPart where there is no torch."""
    with ExitStack() as stack:
        if settings.variable(amx.VARIABLE) is None and amx.is_broken():
            # oneDNN reads it once, when torch is imported.
            stack.enter_context(with_variable(amx.VARIABLE, amx.WITHOUT_AMX))
            torchside.need("torch")
            screen.say(f"warning: matrix units kill programs here; {amx.VARIABLE}={amx.WITHOUT_AMX} is set for now")
            stack.enter_context(amx.hidden_from_inductor())
        torch = torchside.need("torch")
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")  # torch says it of its own code
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(threads)
        stack.enter_context(torchside.need("torch._inductor.config").patch({"cpp.threads": threads}))
        yield
