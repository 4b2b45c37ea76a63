"""`tunewise torch convert` and `export`: diode's files from one form to the other, and Inductor's lookup table."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from tunewise.cli.outputs import check_outputs
from tunewise.cli.problems import Pairs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.cli.torch_shapes import WIDE
from tunewise.deploy.inductor.lookup_table import LookupTable, lookup_table
from tunewise.deploy.inductor.shapes import shapeset_shapes
from tunewise.errors import MissingPart
from tunewise.session import drop_heuristics, load_heuristic

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPS = ("mm", "addmm", "bmm")


@click.command(
    "convert",
    epilog=example(
        "tunewise torch collect --op linear --power-of-two --max-size 64 --num-shapes 1 --out data.json",
        "tunewise torch convert data.json data.msgpack",
    ),
)
@click.argument("source", type=_FILE)
@click.argument("target", type=_FILE)
@click.option("--new-schema", is_flag=True, help="Configs of the older schema become objects.")
@json_option
@pass_screen
def convert(screen: Screen, source: Path, target: Path, new_schema: bool, as_json: bool) -> None:
    """Convert data sets from JSON to msgpack and back.

    SOURCE is a data set or shapeset, in diode's format; the name of TARGET says what is written: .json or .msgpack.
    """
    try:
        from tunewise.formats.diode_data import convert as converted
    except ModuleNotFoundError as error:
        raise MissingPart(f"data sets need {error.name}; run: pip install 'tunewise[learn]'") from None
    check_outputs({"TARGET": target}, [source])
    rows = converted(source, target, is_renewed=new_schema)
    if as_json:
        screen.json({"file": str(target), "rows": rows})
        return
    screen.show(f"{count(rows, 'row')} written to {target}")


@click.command(
    "export",
    epilog=example(
        "tunewise torch export --device H100 --problem m=1024,n=1024,k=1024,dtype=bfloat16 --out lookup_table.json"
    ),
)
@click.option("--device", help="The GPU the table is for, such as H100; the one that is here, unless told.")
@click.option("--op", type=click.Choice(_OPS), default="mm", show_default=True, help="What --problem is about.")
@click.option("--problem", "problems", type=Pairs(), multiple=True, help="A product; repeatable.")
@click.option("--shapeset", type=_FILE, help="Products of a shapeset, in diode's format.")
@click.option("--models", type=click.Path(path_type=Path), help="Models that answer, besides those in force.")
@click.option("--top-k", type=click.IntRange(min=1), default=1, show_default=True, help="Configs for each product.")
@click.option("--dynamic", is_flag=True, help="For a program whose sizes may change.")
@click.option("--out", required=True, type=_FILE, help="The file to write.")
@json_option
@pass_screen
def export(
    screen: Screen,
    device: str | None,
    op: str,
    problems: Sequence[dict[str, Any]],
    shapeset: Path | None,
    models: Path | None,
    top_k: int,
    dynamic: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Write what is known as Inductor's lookup table.

    It is for GPUs, and can be made without one. Products are answered by memory, tables and models; without any
    product named, it is everything that was tuned on that device. What nothing is known of is left out.
    """
    check_outputs({"--out": out}, [shapeset, models])
    asked: dict[str, list[dict[str, Any]]] = {op: [dict(problem) for problem in problems]} if problems else {}
    for shape in shapeset_shapes(shapeset, ops=_OPS, limits=WIDE) if shapeset is not None else ():
        asked.setdefault(shape.op, []).append(dict(shape.features))
    with ExitStack() as stack:
        if models is not None:
            load_heuristic(models)
            stack.callback(drop_heuristics)
        made = lookup_table(asked or None, device=device, top_k=top_k, is_dynamic=dynamic)
    made.save(out)
    _tell(screen, made, out, as_json)


def _tell(screen: Screen, made: LookupTable, out: Path, as_json: bool) -> None:
    left_out = [{"op": op, "problem": dict(problem), "reason": reason} for op, problem, reason in made.left_out]
    if as_json:
        screen.json({"file": str(out), "device": made.device, "products": len(made.table), "left_out": left_out})
        return
    screen.show(f"{count(len(made.table), 'product')} for {made.device} written to {out}")
    for reason in dict.fromkeys(reason for *_, reason in made.left_out):
        number = sum(one["reason"] == reason for one in left_out)
        screen.say(f"warning: {count(number, 'product')} left out: {reason}")
