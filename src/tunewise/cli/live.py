"""`tunewise live`: a page that shows what is going on, in a browser on this machine or another."""

import time
from contextlib import suppress
from pathlib import Path

import click

from tunewise import settings, system
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.errors import MissingPart

PORT = 8765
_NICE = 10  # the page looks on: whoever tunes on this machine comes first
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog=example("tunewise live --snapshot live.html"))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 for all networks.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any free one.")
@click.option("--token-file", type=_FILE, help="File of the token, made if missing; if not given, one in the home.")
@click.option("--snapshot", type=_FILE, help="Write the page as it is now to this HTML file, and end.")
@json_option
@pass_screen
def live(screen: Screen, host: str, port: int, token_file: Path | None, snapshot: Path | None, as_json: bool) -> None:
    """Show what is being tuned, in a browser.

    Runs and their best times so far, what the ladder answers, whose proposals win, the nodes of a fleet and the store:
    of every process, on any machine, that shares this store. Open the address that is printed; Ctrl-C ends it.
    """
    if snapshot is not None:
        _write(screen, snapshot, as_json)
    else:
        _serve(screen, host, port, token_file, as_json)


def _write(screen: Screen, path: Path, as_json: bool) -> None:
    from tunewise.report import live_page, live_state
    from tunewise.report.live_watch import watched

    seen = live_state.snapshot(watched(settings.current()), time.time())
    live_page.save(seen, path)
    trouble = seen.health.trouble
    if as_json:
        counts = {"running": seen.running.total, "finished": seen.finished.total}
        screen.json({"file": str(path), **counts, "trouble": trouble})
    else:
        screen.say(f"the page as it is now was written to {path}")
        if trouble is not None:
            screen.say(f"warning: {trouble}")


def _serve(screen: Screen, host: str, port: int, token_file: Path | None, as_json: bool) -> None:
    from tunewise.report.live_token import file_at_home, kept, session_key

    try:
        from tunewise.report.live import listen, serve
        from tunewise.report.live_access import Access
    except ImportError as error:
        said = f"the live page needs {error.name}, which is not installed: pip install 'tunewise[dashboard]'"
        raise MissingPart(said) from error
    in_force = settings.current()
    file = token_file if token_file is not None else file_at_home(in_force.home)
    token = kept(file)
    listening = listen(host, port)
    here, elsewhere = listening.address(token), listening.address_elsewhere(token)
    if as_json:
        screen.json({"address": here, "elsewhere": elsewhere, "host": host, "port": listening.port})
    else:
        screen.show(here)
        screen.say(f"open it on another machine of this network as {elsewhere}" if elsewhere else "Ctrl-C ends it")
    if not listening.is_private:
        screen.say("warning: this is plain HTTP: whoever can listen to the network can read the token; ssh -L hides it")
    with suppress(OSError):
        system.give_way(_NICE)
    with suppress(KeyboardInterrupt):
        serve(listening, in_force, Access(token, session_key(file)))
    screen.say("ended")
