"""`tunewise pin`: what is remembered, frozen in a file that answers before memory does."""

from pathlib import Path

import click

from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen, plain_json
from tunewise.formats.pins import encode
from tunewise.models.whole import write_whole
from tunewise.session.pins import freeze


@click.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise pin",
        "tunewise pin isin --anywhere --out pins.json",
    )
)
@click.argument("decisions", metavar="[DECISION]...", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), help="The file to write, instead of stdout.")
@click.option("--anywhere", is_flag=True, help="Let the answers count on every device, not only on this one.")
@json_option
@pass_screen
def pin(screen: Screen, decisions: tuple[str, ...], out: Path | None, anywhere: bool, as_json: bool) -> None:
    """Freeze what is remembered in a pins file.

    Of all decisions, or of each DECISION named: the latest answer of every problem that was tuned on this device. It
    goes to stdout, so `tunewise pin > pins.json` keeps it.
    Programs that run with TUNEWISE_PINS=pins.json give these answers, whatever is remembered or measured later.
    """
    sound_store()
    pins = freeze(decisions, anywhere=anywhere)
    if out is None:
        click.echo(plain_json(encode(pins).decode()), nl=False)
        if not as_json:
            screen.say(f"{count(len(pins), 'answer')} frozen")
        return
    write_whole(out, encode(pins))
    if as_json:
        screen.json({"file": str(out), "pins": len(pins)})
        return
    screen.show(f"{count(len(pins), 'answer')} frozen in {out}")
