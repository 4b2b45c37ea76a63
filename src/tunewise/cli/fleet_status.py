"""`tunewise fleet status`: what plans and their devices are at, by the signs they give to the store."""

import time
from collections.abc import Mapping
from typing import Any

import click

from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, example, json_option, seconds
from tunewise.fleet.signs import STALE_S
from tunewise.store import Sign

_WORKING = ("running", "busy")


@click.command(epilog=example("tunewise fleet status"))
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show plans of the last day and their devices.

    Every process that uses the same store sees the same. Who has given no sign for 15 seconds in the middle of
    something is gone or stuck.
    """
    screen: Screen = ctx.obj
    store = sound_store()
    found = [_row(sign) for sign in store.signs("plan")]
    devices = [_row(sign) for sign in store.signs("node")]
    if as_json:
        screen.json({"plans": found, "devices": devices})
        return
    if not found:
        screen.say("no plan was run in the last day: tunewise fleet run PLAN")
        return
    numbers = ("units", "done", "failed", "evaluations", "seen")
    screen.table(
        ("plan", "kind", "state", *numbers), [_plan_cells(row) for row in found], right=("units", *numbers[1:])
    )
    shown = [row for row in devices if row["state"] != "gone"]
    if shown:
        columns = ("device", "node", "state", "done", "evaluations", "seen", "unit")
        screen.table(columns, [_device_cells(row) for row in shown], right=("done", "evaluations", "seen"))


def _row(sign: Sign) -> dict[str, Any]:
    age_s = max(0.0, time.time() - sign.at)
    is_lost = sign.body.get("state") in _WORKING and age_s > STALE_S
    return {
        **sign.body,
        "id": sign.key,
        "age_s": age_s,
        "state": "gone or stuck" if is_lost else sign.body.get("state"),
    }


def _plan_cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    counts = (row.get(name, 0) for name in ("units", "done", "failed", "evaluations"))
    return (row.get("name", row["id"]), row.get("kind", "-"), row["state"], *counts, _ago(row))


def _device_cells(row: Mapping[str, Any]) -> tuple[object, ...]:
    counts = (row.get("done", 0), row.get("evaluations", 0))
    return (row.get("device", "-"), row.get("name", "-"), row["state"], *counts, _ago(row), row.get("unit") or "-")


def _ago(row: Mapping[str, Any]) -> str:
    return f"{seconds(round(row['age_s']) or 1)} ago"
