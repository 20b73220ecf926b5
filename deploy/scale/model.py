#!/usr/bin/env python3
"""The capacity model of SCALE.md: `model.py` prints its table, `model.py --check` proves both.

What a contribution of `r` records costs is a line through the smallest and the largest size of measured.json; the size in
between was not used to draw it, and must be met within TOLERANCE. The table in SCALE.md must be the one printed here.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
TOLERANCE = 0.15
DAY = 86_400
GIB, TIB = 1 << 30, 1 << 40

# Stated, not measured: change them to yours. Prices in US dollars, as cloud providers list them in 2026 to the nearest step.
PUT_PRICE = 0.005 / 1000  # one PUT of an object
OBJECT_PRICE = 0.023  # a GiB of objects for a month
CORE_PRICE = 0.04  # a core with 4 GiB of memory for an hour
DATABASE_PRICE = 0.115  # a GiB of the database's disk for a month
PUT_SECONDS = 0.03  # one conditional put to an object store
USED = 0.6  # how much of a core is planned to be used

# Deployments: records a second, records of a contribution.
DEPLOYMENTS = [(1_000, 100), (1_000, 500), (100_000, 500), (1_000_000, 500)]


class Line:
    """What grows with the records of a contribution: a fixed part and one for each record."""

    def __init__(self, sizes: list, name: str):
        first, last = sizes[0], sizes[-1]
        self.each = (last[name] - first[name]) / (last["records"] - first["records"])
        self.fixed = first[name] - self.each * first["records"]

    def at(self, records: int) -> float:
        return self.fixed + self.each * records


class Model:
    def __init__(self, measured: dict):
        self.sizes = measured["sizes"]
        self.processor = Line(self.sizes, "processorSeconds")
        self.body = Line(self.sizes, "bodyBytes")
        self.table = Line(self.sizes, "tableBytes")
        self.database = Line(self.sizes, "databaseBytes")
        self.objects = max(size["objects"] for size in self.sizes)
        self.rows = sum(self.sizes[-1]["databaseRows"].values())

    def problems(self) -> list:
        """Where the lines miss what was measured in between."""
        found = []
        for name in ("processor", "body", "table", "database"):
            field = {"processor": "processorSeconds"}.get(name, name + "Bytes")
            for size in self.sizes[1:-1]:
                told, is_ = getattr(self, name).at(size["records"]), size[field]
                if abs(told - is_) > TOLERANCE * is_:
                    found.append(f"{field} at {size['records']} records: {told:.6g} told, {is_:.6g} measured")
        return found

    def deployment(self, rate: int, records: int) -> dict:
        contributions = rate / records
        puts = contributions * self.objects
        database = contributions * DAY * self.database.at(records)
        objects = contributions * DAY * self.table.at(records)
        a_million = 1e6 / records
        return {
            "records/s": f"{rate:,}",
            "records each": f"{records:,}",
            "contributions/s": f"{contributions:,.0f}",
            "cores": f"{contributions * self.processor.at(records) / USED:,.1f}",
            "into the log": f"{contributions * self.body.at(records) / 2**20:,.1f} MiB/s",
            "puts/s": f"{puts:,.0f}",
            "datasets at once": f"{max(1, contributions * 2 * PUT_SECONDS):,.0f}",
            "rows/day": f"{contributions * DAY * self.rows / 1e6:,.1f} M",
            "database/day": f"{database / GIB:,.1f} GiB",
            "objects/day": f"{objects / TIB:,.2f} TiB",
            "$ a million records": f"{a_million * (self.objects * PUT_PRICE + self.processor.at(records) / USED / 3600 * CORE_PRICE):.3f}",
            "$ a month to keep them": f"{a_million * (self.table.at(records) * OBJECT_PRICE + self.database.at(records) * DATABASE_PRICE) / GIB:.4f}",
        }

    def text(self) -> str:
        columns = [self.deployment(*deployment) for deployment in DEPLOYMENTS]
        names = list(columns[0])
        lines = ["| " + " | ".join([name] + [column[name] for column in columns]) + " |" for name in names]
        lines.insert(1, "|-|" + "-:|" * len(columns))
        return "\n".join(lines)


def main() -> int:
    model = Model(json.loads((HERE / "measured.json").read_text()))
    if sys.argv[1:] != ["--check"]:
        print(model.text())
        return 0
    problems = model.problems()
    if model.text() not in (HERE.parent / "SCALE.md").read_text(encoding="utf-8"):
        problems.append("the table in SCALE.md differs from the printed one")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
