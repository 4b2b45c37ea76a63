"""`tunewise dataset`: measurements as data to learn from: look, split, merge, export."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise.cli.data_files import Request, data_options, gather, listed
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen
from tunewise.errors import InvalidFile
from tunewise.session.ladder import show

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.data_report import DataReport, FeatureRange

_FORMATS = ("parquet", "csv", "autoheuristic", "diode", "diode-msgpack")
_OUT = click.Path(dir_okay=False, path_type=Path)
_SHOWN = 10  # winners and words; --json has all
_COLLECT = "tunewise collect isin --problem n=5000,m=50,span=500 --problem n=9000,m=90,span=900"


@click.group(epilog=example(_COLLECT, "tunewise dataset info --decision isin"))
def dataset() -> None:
    """Look at measurements, and make data sets of them.

    DATA are files: exports of the store, AutoHeuristic logs, diode data sets, CSV or Parquet. Without any it is what
    the store remembers of --decision.
    """


@dataset.command(
    epilog=example(
        _COLLECT,
        "tunewise dataset info --decision isin",
        "tunewise store export facts.jsonl --decision isin",
        "tunewise dataset info facts.jsonl --json",
    )
)
@json_option
@pass_screen
@data_options
def info(screen: Screen, request: Request, as_json: bool) -> None:
    """Show what data is worth: coverage, noise, headroom.

    The noise floor is the typical ratio of two estimates of one time, the headroom how much longer the default takes
    than the best config measured.
    """
    from tunewise.learn.data_report import report_of

    report = report_of(gather(screen, request))
    if as_json:
        screen.json(report.to_json())
        return
    screen.table(("data", report.decision), _facts(report))
    screen.show("")
    screen.table(("feature", "distinct", "values"), map(_feature, report.features), right=("distinct",))
    screen.show("")
    winners = [(show(winner.config), winner.problems) for winner in report.winners[:_SHOWN]]
    screen.table(("best config", "problems"), winners, right=("problems",))


def _facts(report: "DataReport") -> list[tuple[str, str]]:
    failures = [f"{number} {kind}" for kind, number in report.failures.items()]
    headroom = report.headroom
    rows = [
        ("problems", str(report.problems)),
        ("configs", str(report.configs)),
        ("rows", f"{report.rows}, with {count(report.samples, 'sample')}"),
        ("coverage", f"{report.coverage:.1%} of problems x configs"),
        ("failures", ", ".join(failures) or "none"),
        ("noise floor", f"{report.noise_floor:.3f}" if report.noise_floor else "unknown: one sample a row"),
        ("default", show(report.default) if report.default is not None else "unknown: name it with --default"),
        ("duplicates", str(report.duplicates)),
        ("conflicts", str(report.conflicts)),
        ("malformed", str(report.malformed)),
        ("devices", str(len(report.devices))),
    ]
    if headroom is not None:
        told = f"{headroom.geomean:.3f} (geometric mean), p95 {headroom.p95:.3f}, max {headroom.max:.3f}"
        rows.insert(7, ("default / best", told))
    return rows


def _feature(feature: "FeatureRange") -> tuple[str, int, str]:
    if feature.low is None or feature.high is None:
        return feature.name, feature.distinct, listed(feature.words, _SHOWN)
    return feature.name, feature.distinct, f"{feature.low:g} to {feature.high:g}"


@dataset.command(
    epilog=example(
        "tunewise collect isin --problem n=500,m=5,span=9 --problem n=900,m=9,span=9",
        "tunewise dataset split --decision isin --share 0.5 --out-train train.parquet --out-test test.parquet",
    )
)
@click.option("--share", type=Amount(min=0, max=1), default=0.3, show_default=True, help="Share that is held out.")
@click.option("--by", type=click.Choice(["problem", "device"]), default="problem", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds split alike.")
@click.option("--out-train", type=_OUT, required=True, help="File for what may be learned from.")
@click.option("--out-test", type=_OUT, required=True, help="File for what is held out.")
@json_option
@pass_screen
@data_options
def split(
    screen: Screen, request: Request, share: float, by: str, seed: int, out_train: Path, out_test: Path, as_json: bool
) -> None:
    """Split data by problem or by device, never by row.

    Repeats of one problem stay on one side. A file's name tells its format: .parquet, .csv, .txt for a log,
    .json or .msgpack for a diode data set.
    """
    check_outputs({"--out-train": out_train, "--out-test": out_test}, request.files)
    data = gather(screen, request)
    from tunewise.learn.split import by_device, by_problem

    sides = (by_problem if by == "problem" else by_device)(data, share, seed)
    rows = {"train": _written(sides[0], out_train), "test": _written(sides[1], out_test)}
    if as_json:
        screen.json(rows)
        return
    cells = [(name, row["problems"], row["rows"], row["file"]) for name, row in rows.items()]
    screen.table(("side", "problems", "rows", "file"), cells, right=("problems", "rows"))


@dataset.command(
    epilog=example(
        _COLLECT,
        "tunewise store export facts.jsonl --decision isin",
        "tunewise dataset merge facts.jsonl --out all.parquet",
    )
)
@click.option("--out", type=_OUT, required=True, help="File to write: .parquet, .csv, or .txt for a log.")
@json_option
@pass_screen
@data_options
def merge(screen: Screen, request: Request, out: Path, as_json: bool) -> None:
    """Put several files together.

    They must be about one decision with the same features and parameters. Samples of a problem and config that several
    files have are put together.
    """
    check_outputs({"--out": out}, request.files)
    data = gather(screen, request)
    written = {**_written(data, out), "notes": dict(data.notes)}
    if as_json:
        screen.json(written)
        return
    screen.show(f"{count(len(data), 'problem')} and {count(len(data.rows), 'row')} written to {out}")
    for name, number in data.notes.items():
        screen.say(f"{number} {name}")


@dataset.command(
    epilog=example(
        _COLLECT,
        "tunewise dataset export --decision isin --out isin.parquet --dry-run",
        "tunewise dataset export --decision isin --out isin.csv",
    )
)
@click.option("--out", type=_OUT, required=True, help="File to write.")
@click.option("--format", "kind", type=click.Choice(_FORMATS), help="By default what the file's name tells.")
@click.option("--dry-run", is_flag=True, help="Only show the fields.")
@json_option
@pass_screen
@data_options
def export(screen: Screen, request: Request, out: Path, kind: Any, dry_run: bool, as_json: bool) -> None:
    """Write data to share, after showing its fields.

    No host, user or path is in it: a feature or fact called one is left out, and a word that names one is replaced by a
    digest. Of what failed only the kind is told.
    """
    check_outputs({"--out": None if dry_run else out}, request.files)
    data = gather(screen, request)
    from tunewise.formats.datasets import fields, format_of
    from tunewise.formats.sharing import Veil, shareable

    veil, kind = Veil(), kind or format_of(out)
    shared = shareable(data, veil)
    told = fields(shared, kind)
    if not as_json:
        screen.table(("field", "holds"), told.items())
    if veil.hidden:
        screen.say(f"{count(len(veil.hidden), 'private word')} replaced by digests")
    written = {"format": kind, "fields": told, "hidden": len(veil.hidden), "is_written": not dry_run}
    written |= {"file": str(out), **_size(shared)} if dry_run else _written(shared, out, kind)
    if as_json:
        screen.json(written)
    elif not dry_run:
        screen.say(f"{count(len(shared.rows), 'row')} written to {out}")


def _written(data: "DataSet", file: Path, kind: Any = None) -> dict[str, Any]:
    from tunewise.formats.datasets import write

    if not len(data.rows):
        raise InvalidFile(f"{file} would hold nothing; give more data")
    write(data, file, kind)
    return {"file": str(file), **_size(data)}


def _size(data: "DataSet") -> dict[str, int]:
    return {"problems": len(data), "configs": len(data.configs), "rows": len(data.rows)}
