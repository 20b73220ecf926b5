"""Reads every version of a Delta table with readers nobody here wrote: `deltalake` and `polars`.

usage: read_tables.py TABLE_FOLDER

Prints one JSON document: for each reader, for each Delta version, the rows in the order of their hidden version and
ordinal columns. The other hidden columns and nulls are left out; times are RFC 3339 in UTC with microseconds.
"""

import datetime
import json
import sys

import deltalake
import polars

HIDDEN = ("_sluice_key", "_sluice_contribution", "_sluice_agent", "_sluice_version", "_sluice_ordinal")


def with_deltalake(folder, version):
    table = deltalake.DeltaTable(folder, version=version)
    reader = deltalake.QueryBuilder().register("records", table).execute("select * from records")
    return polars.DataFrame(reader)


def with_polars(folder, version):
    return polars.scan_delta(folder, version=version).collect()


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


def rows(frame):
    ordered = sorted(frame.to_dicts(), key=lambda row: (row["_sluice_version"], row["_sluice_ordinal"]))
    return [
        {name: plain(value) for name, value in row.items() if value is not None and name not in HIDDEN}
        for row in ordered
    ]


def main(folder):
    latest = deltalake.DeltaTable(folder).version()
    readers = {"deltalake": with_deltalake, "polars": with_polars}
    read = {
        name: {str(version): rows(reader(folder, version)) for version in range(latest + 1)}
        for name, reader in readers.items()
    }
    json.dump(read, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1])
