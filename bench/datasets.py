"""Reading ten million rows: our columns against one Python object a row; time a row, and the memory of each.

Target: a table of 200,000 problems x 50 configs is read, reported on and split in less than 2 GB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGS = 50
LIMIT_GB = 2.0


def generate(folder: Path, problems: int) -> dict[str, Path]:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    chance = np.random.default_rng(0)
    sizes = [np.exp2(chance.uniform(4, 14, problems)).astype(int) for _ in range(3)]
    problem, config = np.repeat(np.arange(problems), CONFIGS), np.tile(np.arange(CONFIGS, dtype=np.int32), problems)
    times = (np.prod([size.astype(float) for size in sizes], axis=0) / 1e11 + 1e-6)[problem]
    times *= np.exp(chance.normal(0, 0.3, len(times)))
    columns = {f"f_{name}": size[problem] for name, size in zip("mnk", sizes, strict=True)}
    columns["choice"] = pa.DictionaryArray.from_arrays(pa.array(config), pa.array([f"tile{n}" for n in range(CONFIGS)]))
    columns["is_default"] = (config == 0).astype(np.int8)
    columns["t0"], columns["t1"] = times, times * np.exp(np.abs(chance.normal(0, 0.03, len(times))))
    table = pa.table(columns)
    files = {"csv": folder / "big.csv", "parquet": folder / "big.parquet"}
    csv.write_csv(table, files["csv"])
    parquet.write_table(table, files["parquet"])
    return files


def ours(path: Path) -> int:
    from tunewise.formats.datasets import read
    from tunewise.learn.data_report import report_of
    from tunewise.learn.split import by_problem

    data = read([path])
    report_of(data)
    by_problem(data)
    return len(data.rows)


def row_by_row(path: Path) -> int:
    import csv

    with path.open(newline="") as stream:
        rows = [(float(row["t0"]), row["choice"], int(row["f_m"])) for row in csv.DictReader(stream)]
    return len(rows)


WAYS = {"ours": ours, "objects": row_by_row}


def measured(way: str, path: Path) -> dict[str, float]:
    """Run one way in a process of its own, so that its peak of memory is its own."""
    asked = [sys.executable, __file__, "--way", way, "--file", str(path)]
    told: dict[str, float] = json.loads(subprocess.run(asked, capture_output=True, check=True, text=True).stdout)
    return told


def answer(way: str, path: Path) -> None:
    began = time.perf_counter()
    rows = WAYS[way](path)
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": time.perf_counter() - began, "peak_gb": peak_gb, "rows": rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--way", choices=sorted(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        answer(given.way, given.file)
        return
    with tempfile.TemporaryDirectory() as folder:
        files = generate(Path(folder), 20_000 if given.quick else 200_000)
        results = {"ours, csv": measured("ours", files["csv"]), "ours, parquet": measured("ours", files["parquet"])}
        results["objects, csv"] = measured("objects", files["csv"])
    is_held = max(results[name]["peak_gb"] for name in results if name.startswith("ours")) < LIMIT_GB
    if given.json:
        print(json.dumps({"results": results, "targets": {f"below {LIMIT_GB:g} GB": is_held}}))
        return
    base = results["objects, csv"]
    for name, told in results.items():
        a_row = told["seconds"] / told["rows"] / (base["seconds"] / base["rows"])
        print(f"{name:14} {told['rows']:9.0f} rows {told['seconds']:6.1f} s {told['peak_gb']:5.2f} GB  x{a_row:.2f}")
    print(f"target below {LIMIT_GB:g} GB: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
