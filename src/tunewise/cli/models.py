"""`tunewise models`: the models that come with tunewise and those of packages, and whether they answer here."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tunewise.cli.model_rows import rows, shown_package
from tunewise.cli.model_text import describe, of_model
from tunewise.cli.problems import Pairs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.errors import NotFound
from tunewise.heuristics.packages import Package, offered, pack, wheel_name
from tunewise.heuristics.shipped import Shipped, shipped
from tunewise.models import load
from tunewise.session import packages

_FILE = click.Path(path_type=Path, dir_okay=False)
_PACK = "tunewise models pack isin --name isin-mine --out isin-mine"
_INSTALL = "tunewise models install isin-mine"


@click.group(epilog=example("tunewise models list"))
def models() -> None:
    """Look at models, and install packages of them.

    Some models come with tunewise; others are in packages, which answer nothing until you activate them.
    """


@models.command("list", epilog=example("tunewise models list", "tunewise models list --json"))
@json_option
@pass_screen
def list_models(screen: Screen, as_json: bool) -> None:
    """List the models, and whether each answers here.

    Shown are those that ship, those of packages at home, and those that Python packages installed here offer.
    """
    found = rows()
    if as_json:
        screen.json({"models": found})
        return
    keys = ("name", "state", "decision", "learner", "created", "choices", "regret", "here")
    columns = ("model", "state", "decision", "learner", "created", "choices", "held-out regret", "here")
    screen.table(columns, [[_cell(row[key]) for key in keys] for row in found], right=("choices", "held-out regret"))


@models.command(epilog=example("tunewise models show isin", "tunewise models show isin --json"))
@click.argument("name")
@json_option
@pass_screen
def show(screen: Screen, name: str, as_json: bool) -> None:
    """Show a model or a package of them.

    NAME is one of the list. The fence, the features with their bounds, the choices and the tree are shown; of a
    package its manifest too.
    """
    found = _found(name)
    if isinstance(found, Package):
        _show_package(screen, found, as_json)
    else:
        _show_shipped(screen, found, as_json)


@models.command(epilog=example(_PACK, _INSTALL, "tunewise models list"))
@click.argument("source")
@json_option
@pass_screen
def install(screen: Screen, source: str, as_json: bool) -> None:
    """Copy a package home, checked and not yet active.

    SOURCE is its directory, its wheel, or the name that an installed Python package offers it by. Every file must be
    what the manifest says; no code of it runs.
    """
    done = packages.install(source)
    if as_json:
        screen.json(_state(done))
        return
    manifest = done.package().manifest
    screen.show(f"{done.name} {manifest.version} installed: {count(len(manifest.models), 'model')} in {done.path}")
    if not done.is_active:
        screen.say(f"it answers nothing yet; to let it, run: tunewise models activate {done.name}")


@models.command(epilog=example(_PACK, _INSTALL, "tunewise models activate isin-mine"))
@click.argument("name")
@json_option
@pass_screen
def activate(screen: Screen, name: str, as_json: bool) -> None:
    """Let an installed package answer.

    NAME is that of the package. Its models are asked in every program of this home, after your own heuristics and
    before those that ship; where their fence or a version does not fit, they are not.
    """
    done = packages.activate(name)
    if as_json:
        screen.json(_state(done))
        return
    screen.show(f"{name} is active")
    for row in rows():
        if row["name"] == name and row["state"] == "active" and row["here"] != "answers":
            screen.say(f"warning: its model of {row['decision']} does not answer here: it {row['here']}")


@models.command(epilog=example(_PACK, _INSTALL, "tunewise models deactivate isin-mine"))
@click.argument("name")
@json_option
@pass_screen
def deactivate(screen: Screen, name: str, as_json: bool) -> None:
    """Let a package answer no more.

    NAME is that of the package; it stays installed.
    """
    done = packages.deactivate(name)
    if as_json:
        screen.json(_state(done))
    else:
        screen.show(f"{name} is not active")


@models.command(epilog=example(_PACK, _INSTALL, "tunewise models remove isin-mine --yes"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Really remove it; otherwise you are only told what would go.")
@json_option
@pass_screen
def remove(screen: Screen, name: str, yes: bool, as_json: bool) -> None:
    """Remove an installed package, after saying which.

    NAME is that of the package. Without --yes nothing goes.
    """
    gone = packages.remove(name) if yes else packages.find(name)
    if as_json:
        screen.json({**_state(gone), "is_done": yes})
    else:
        screen.show(f"{gone.path} {'removed' if yes else 'would be removed; add --yes to do it'}")


@models.command("pack", epilog=example(_PACK, "tunewise models pack isin --name isin-mine --wheel --out ."))
@click.argument("given", metavar="MODEL...", nargs=-1, required=True)
@click.option("--name", required=True, help="What the package is called.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="A new directory; or the wheel's directory."
)
@click.option("--wheel", is_flag=True, help="Make a wheel that pip installs.")
@click.option("--package-version", "version", default="1.0", show_default=True, help="The version of the package.")
@click.option("--about", default="", help="A sentence that says what it is for.")
@click.option(
    "--fence", type=Pairs(), help="Facts that must be equal, such as hardware.kind=cpu; else the models' own."
)
@click.option("--requires", multiple=True, help="Versions it is for, such as torch>=2.6,<2.14; repeatable.")
@click.option("--with", "extras", multiple=True, type=_FILE, help="A further file, such as data.parquet; repeatable.")
@json_option
@pass_screen
def pack_models(
    screen: Screen,
    /,
    given: Sequence[str],
    name: str,
    out: Path,
    wheel: bool,
    version: str,
    requires: Sequence[str],
    as_json: bool,
    **options: Any,
) -> None:
    """Make a package of models.

    Each MODEL is a file of tunewise train, or the name of a model that ships. The package has a manifest with what
    their cards say and a SHA-256 of every file. Models about torch are for the minor release of torch installed here,
    unless --requires says otherwise.
    """
    target = out / wheel_name(name, version) if wheel else out
    ranges = dict(map(_range, requires)) if requires else None
    files = [_model_file(one) for one in given]
    made = pack(files, target, name=name, version=version, requires=ranges, **options)
    if as_json:
        screen.json({"package": str(made), "name": name, "version": version})
    else:
        screen.show(f"{count(len(files), 'model')} packed in {made}")


def _model_file(given: str) -> Path:
    ships = {one.name: one.path for one in shipped()}
    return Path(given) if Path(given).exists() else ships.get(given, Path(given))


def _range(text: str) -> tuple[str, str]:
    for place, character in enumerate(text):
        if character in "<>=!":
            return text[:place].strip(), text[place:].strip()
    raise click.BadParameter(f"{text!r} is not a library and its versions, such as torch>=2.6,<2.14.")


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _state(one: packages.Installed) -> dict[str, object]:
    return {"name": one.name, "path": str(one.path), "is_active": one.is_active}


def _found(name: str) -> Package | Shipped:
    ships = {one.name: one for one in shipped()}
    if name in ships:
        return ships[name]
    at_home = {one.name: one for one in packages.installed()}
    if name in at_home:
        return at_home[name].package()
    elsewhere: Mapping[str, object] = dict(offered())
    package = elsewhere.get(name)
    if isinstance(package, Package):
        return package
    known = [*ships, *at_home, *elsewhere]
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known) or 'none yet'}"
    raise NotFound(f"no model or package is named {name!r}; {hint}")


def _show_shipped(screen: Screen, found: Shipped, as_json: bool) -> None:
    model = found.model()
    if as_json:
        (row,) = [row for row in rows() if row["name"] == found.name and row["state"] == "ships"]
        screen.json({"model": {**row, **of_model(model), "data": str(found.data)}})
        return
    describe(screen, model)
    screen.show("")
    screen.show(f"learned and judged from {found.data}")


def _show_package(screen: Screen, package: Package, as_json: bool) -> None:
    document, facts = shown_package(package)
    if as_json:
        screen.json({"package": document})
        return
    screen.table(("package", package.manifest.name), facts)
    package.files()
    for entry in package.manifest.models:
        screen.show("")
        describe(screen, load(Path(package.where) / entry.file))
