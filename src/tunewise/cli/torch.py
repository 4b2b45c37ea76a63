"""`tunewise torch`: products of torch.compile collected, learned, judged and compared with max-autotune."""

import click

from tunewise.cli.screen import example
from tunewise.cli.torch_collect import collect, create_validation
from tunewise.cli.torch_compare import compare
from tunewise.cli.torch_files import convert, export
from tunewise.cli.torch_learn import train, validate
from tunewise.cli.torch_workflow import workflow

VERBS: tuple[click.Command, ...] = (collect, create_validation, train, validate, compare, convert, export, workflow)


@click.group(epilog=example("tunewise torch --help"))
def torch() -> None:
    """Replace max-autotune by a model."""


for _verb in VERBS:
    torch.add_command(_verb)
