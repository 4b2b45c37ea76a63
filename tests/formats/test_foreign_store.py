"""What a file tells survives the whole way: taken in, kept in the store or a table, and written again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign_samples import SAMPLES

from tunewise.formats import foreign
from tunewise.formats.findings import Finding
from tunewise.session.context import current_store
from tunewise.session.exporting import findings_for
from tunewise.session.importing import carry_out, plan_import


def through_the_store(found: foreign.Foreign, place: Path) -> list[Finding]:
    carry_out(plan_import([found], current_store(), decision="kernel", on_conflict="fail"), current_store())
    told = findings_for("kernel", found.format, current_store()).findings
    back: list[Finding] = []
    for file in foreign.write(told, found.format.name):
        for path, raw in file.files(place / file.name):
            path.write_bytes(raw)
        back += foreign.read(place / file.name, found.format.name).findings
    return back


def comparable(findings: Any) -> list[str]:
    """Return findings without a decision, which not every file names, in an order of their own."""
    return sorted(
        repr((sorted(one.config.items()), replace(one, decision="", config={}, extra={}))) for one in findings
    )


# A lookup table can only be about the products it names: it cannot be written of a decision called otherwise.
@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "inductor-table"])
def test_what_a_file_tells_survives_the_store(tmp_path: Path, name: str) -> None:
    file, raw = SAMPLES[name]
    (tmp_path / file).write_bytes(raw)
    found = foreign.read(tmp_path / file)
    (tmp_path / "out").mkdir()
    assert comparable(through_the_store(found, tmp_path / "out")) == comparable(found.findings)


def test_a_recorded_space_survives_the_store(tmp_path: Path) -> None:
    found = foreign.read(Path(__file__).parents[1] / "data" / "pnpoly.json.gz")
    assert len(found.findings) == 360
    assert comparable(through_the_store(found, tmp_path)) == comparable(found.findings)
