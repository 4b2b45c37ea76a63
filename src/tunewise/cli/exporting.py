"""`tunewise export`: what is remembered of a decision, written as others' tools read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tunewise.cli.home import sound_store
from tunewise.cli.importing import rename_option
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats.foreign import FORMATS, Format, named, write
from tunewise.formats.writing import Written
from tunewise.models.whole import write_whole
from tunewise.session.exporting import findings_for
from tunewise.session.importing import check_names, renamed


@click.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise export isin --format kernel-tuner --out isin.json",
        "tunewise export isin --format t4 --out results --json",
    )
)
@click.argument("decision")
@click.option("--format", "name", required=True, type=click.Choice([one.name for one in FORMATS]), help="Whose files.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A file, or a directory for several.")
@rename_option
@json_option
@pass_screen
def export(
    screen: Screen, decision: str, name: str, out: Path, rename: Mapping[str, Any] | None, as_json: bool
) -> None:
    """Write what is remembered as others' files.

    DECISION is its name. Formats of measurements get every trial; those of winners (vllm, tunable, helion-best,
    inductor-table) get the winner of every problem, also what tables say. Where a format holds one problem or device
    in a file, or its file names mean something, --out is a directory.
    """
    chosen = named(name)
    told = findings_for(decision, chosen, sound_store())
    names = {old: str(new) for old, new in (rename or {}).items()}
    check_names(told.findings, names)
    files = write([renamed(finding, names) for finding in told.findings], name)
    paths = _write(files, out, chosen)
    if as_json:
        document = {"files": [str(path) for path in paths], "configs": len(told.findings), "left_out": told.left_out}
        screen.json(document)
        return
    where = f"{len(paths)} files in {out}" if len(paths) > 1 and out.is_dir() else " and ".join(map(str, paths))
    screen.show(f"{count(len(told.findings), 'config')} written to {where}")
    if told.left_out:
        screen.say(
            f"warning: {count(told.left_out, 'rule')} about more than one problem left out: no such file tells it"
        )


def _write(files: Sequence[Written], out: Path, chosen: Format) -> list[Path]:
    if len(files) == 1 and not chosen.names_files and not out.is_dir():
        return list(_put(files[0], out))
    if out.exists() and not out.is_dir():
        needed = "is named by what it is about" if chosen.names_files else f"takes {len(files)} files here"
        raise InvalidData(f"{out} is a file, and a {chosen.about} {needed}: give a directory as --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{out} cannot be made: {error.strerror}; choose another place for it") from None
    return [path for file in _unique(files) for path in _put(file, out / Path(file.name).name)]


def _put(file: Written, place: Path) -> Iterator[Path]:
    for path, raw in file.files(place):
        write_whole(path, raw)
        yield path


def _unique(files: Sequence[Written]) -> list[Written]:
    """Return files with names that differ, whatever they are about."""
    seen: dict[str, int] = {}
    told = []
    for file in files:
        seen[file.name] = number = seen.get(file.name, 0) + 1
        told.append(file if number == 1 else replace(file, name=f"{number}-{file.name}"))
    return told
