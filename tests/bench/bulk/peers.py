"""Bulk load by others: `upload.ndjson` in FOLDER onto a table that has `base.ndjson`.

usage: peers.py duckdb|polars FOLDER

Each does the same work as well as it can: typed parse, records that the file or the table has already out, records with
personal data in `note` out, Parquet with zstd-1, SHA-256 and sync of each part, one Delta commit. The table of the base is
made first and not counted. Prints one JSON object: seconds of the clock and of processors, MiB, records accepted.
"""

import glob
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time

COLUMNS = {"id": "VARCHAR", "device": "VARCHAR", "seq": "BIGINT", "value": "DOUBLE", "ok": "BOOLEAN", "note": "VARCHAR"}
CARD = r"\b(?:[0-9][ -]?){12,18}[0-9]\b"
OTHERS = (
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
    r"|\+[0-9]{1,3}[ -]?[0-9]{1,4}(?:[ -][0-9]{2,4}){1,4}\b|\b01[016789]-?[0-9]{3,4}-?[0-9]{4}\b"
    r"|\b[0-9]{6}-[1-4][0-9]{6}\b|\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b"
)
THREADS = 2


def luhn(text):
    digits = [int(c) for c in text if c.isdigit()][::-1]
    return (sum(digits[0::2]) + sum(2 * d - 9 * (d > 4) for d in digits[1::2])) % 10 == 0


def base_table(folder):
    """A table of the base, made once; a copy of it for this run."""
    import duckdb
    from deltalake import write_deltalake

    made = folder + "/base-table"
    if not os.path.exists(made):
        rows = duckdb.sql(f"select * from {source(folder + '/base.ndjson')}").to_arrow_table()
        write_deltalake(made, rows)
    copy = tempfile.mkdtemp(dir=folder)
    shutil.copytree(made, copy, dirs_exist_ok=True)
    return copy


def source(file):
    return f"read_json('{file}', format='newline_delimited', columns={COLUMNS}, ignore_errors=false)"


def by_duckdb(file, table, base):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads={THREADS}")
    connection.execute("set preserve_insertion_order=false")
    connection.execute(
        "create macro luhn(s) as (list_sum(list_transform(range(1, length(s) + 1), lambda i:"
        " case when i % 2 = 1 then s[length(s) - i + 1]::int"
        " when s[length(s) - i + 1]::int > 4 then s[length(s) - i + 1]::int * 2 - 9"
        " else s[length(s) - i + 1]::int * 2 end)) % 10 = 0)"
    )
    personal = (
        "(case when not regexp_matches(note, '[0-9@]') then false"
        f" when regexp_matches(note, '{OTHERS}') then true"
        f" when regexp_matches(note, '{CARD}')"
        f" then luhn(regexp_replace(regexp_extract(note, '{CARD}'), '[^0-9]', '', 'g')) else false end)"
    )
    names = ", ".join(COLUMNS)
    same = " and ".join(f"b.{name} = r.{name}" for name in COLUMNS)
    rows = (
        f"select distinct {names} from {source(file)} r where not {personal}"
        f" and not exists (select 1 from read_parquet({base}) b where {same})"
    )
    out = table + "/out"
    how = "format parquet, compression zstd, compression_level 1, per_thread_output true, row_group_size 122880"
    count = connection.execute(f"copy ({rows}) to '{out}' ({how})").fetchone()[0]
    parts = []
    for index, file in enumerate(sorted(glob.glob(out + "/*.parquet"))):
        parts.append(f"{table}/part-new-{index}.parquet")
        os.rename(file, parts[-1])
    return parts, count


def by_polars(file, table, base):
    import polars as pl

    kinds = {"VARCHAR": pl.String, "BIGINT": pl.Int64, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean}
    schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
    note = pl.col("note")
    other = pl.when(note.str.contains("[0-9@]")).then(note.str.contains(OTHERS)).otherwise(False)
    maybe = note.str.contains("[0-9][ -]?[0-9]{3}") & note.str.contains(CARD)
    card = re.compile(CARD)

    def without_cards(frame):
        found = frame["_card"].to_list()
        keep = [not maybe or not any(luhn(hit) for hit in card.findall(text)) for maybe, text in zip(found, frame["note"])]
        return frame.filter(pl.Series(keep, dtype=pl.Boolean)).drop("_card")

    rows = pl.scan_ndjson(file, schema=schema).filter(~other).with_columns(_card=maybe)
    rows = rows.unique(subset=list(schema), maintain_order=False).join(pl.scan_parquet(base), on=list(schema), how="anti")
    rows = rows.map_batches(without_cards, streamable=True, schema=schema)
    part = f"{table}/part-new-0.parquet"
    rows.sink_parquet(part, compression="zstd", compression_level=1, row_group_size=122880)
    return [part], pl.scan_parquet(part).select(pl.len()).collect().item()


def commit(table, parts):
    """Sync and SHA-256 of every part, then one version."""
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    delta = DeltaTable(table)
    actions = []
    for part in parts:
        with open(part, "rb") as file:
            os.fsync(file.fileno())
            hashlib.file_digest(file, "sha256").hexdigest()
        name, size = os.path.basename(part), os.path.getsize(part)
        now = int(time.time() * 1000)
        actions.append(AddAction(name, size, {}, now, True, "{}"))
    delta.create_write_transaction(actions, mode="append", schema=delta.schema(), partition_by=[])


def main(tool, folder):
    table = base_table(folder)
    try:
        base = sorted(glob.glob(table + "/*.parquet"))
        load = {"duckdb": by_duckdb, "polars": by_polars}[tool]
        # Not counted: programs that stay import once.
        importlib.import_module(tool)
        importlib.import_module("deltalake")
        used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        begun, cpu = time.perf_counter(), used()
        parts, accepted = load(folder + "/upload.ndjson", table, base)
        commit(table, parts)
        wall, cpu = time.perf_counter() - begun, used() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"wall": wall, "cpu": cpu, "memory": memory, "accepted": accepted}))
    finally:
        shutil.rmtree(table)


main(*sys.argv[1:])
