"""What others take to read the same records: `duckdb`, `polars`, `chdb`, `datafusion`, `deltalake`.

usage: peers.py layout FOLDER OUT           the records of the parts in FOLDER as DuckDB lays them out, into OUT
       peers.py pages TOOL FOLDER           pages of 200 records of the parts in FOLDER as JSON, first and at random offsets
       peers.py export TOOL FOLDER OUT      all records as lines of JSON into the file OUT
       peers.py sql TOOL FOLDER QUERIES     the statements of a JSON object over the table `records`, each several times
       peers.py open TOOL TABLE VERSION...  a Delta table at a version, with the list of its parts

Prints one JSON object: milliseconds of the clock and of processors, the best of some.
"""

import glob
import json
import os
import random
import resource
import sys
import time

COLUMNS = ["id", "device", "seq", "value", "ok", "note"]
NAMES = ", ".join(COLUMNS)
THREADS = 2
TIMES = 4


def parts(folder):
    return sorted(glob.glob(folder + "/*.parquet"))


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(run):
    begun = time.perf_counter(), cpu()
    run()
    return (time.perf_counter() - begun[0]) * 1e3, (cpu() - begun[1]) * 1e3


def best(run):
    runs = [measured(run) for _ in range(TIMES)]
    return {"wall": min(wall for wall, _ in runs), "cpu": min(used for _, used in runs)}


def duck():
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads={THREADS}")
    return connection


def layout(folder, out):
    os.makedirs(out, exist_ok=True)
    source = duck()
    source.execute("set preserve_insertion_order=false")
    for index, file in enumerate(parts(folder)):
        source.execute(
            f"copy (select {NAMES} from read_parquet('{file}')) to '{out}/part-{index}.parquet' "
            "(format parquet, compression zstd, compression_level 1, row_group_size 122880)"
        )
    return {"bytes": sum(map(os.path.getsize, parts(out)))}


def pages(tool, folder):
    import orjson

    files = parts(folder)
    if tool == "duckdb":
        connection = duck()
        connection.execute(f"create view records as select {NAMES} from read_parquet({files})")
        count = connection.execute("select count(*) from records").fetchone()[0]

        def page(offset):
            rows = connection.execute(f"select * from records limit 200 offset {offset}").fetchall()
            return orjson.dumps([dict(zip(COLUMNS, row)) for row in rows])

    else:
        import polars

        frame = polars.scan_parquet(files).select(COLUMNS)
        count = frame.select(polars.len()).collect().item()

        def page(offset):
            return orjson.dumps(frame.slice(offset, 200).collect().to_dicts())

    page(0)
    chance = random.Random(5)
    answer = {}
    for name, offsets in {"first": [0] * 10, "random": [chance.randrange(count - 200) for _ in range(40)]}.items():
        runs = sorted(measured(lambda offset=offset: page(offset)) for offset in offsets)
        answer[name] = {"wall": runs[len(runs) // 2][0], "cpu": sum(used for _, used in runs) / len(runs)}
    return answer


def export(tool, folder, out):
    files = parts(folder)
    if tool == "duckdb":
        connection = duck()
        run = lambda: connection.execute(f"copy (select {NAMES} from read_parquet({files})) to '{out}' (format json)")
    else:
        import polars

        run = lambda: polars.scan_parquet(files).select(COLUMNS).sink_ndjson(out)
    wall, used = measured(run)
    size = os.path.getsize(out)
    os.unlink(out)
    return {"export": {"wall": wall, "cpu": used, "bytes": size}}


def sql(tool, folder, queries):
    files = parts(folder)
    if tool == "duckdb":
        connection = duck()
        connection.execute(f"create view records as select {NAMES} from read_parquet({files})")
        run = lambda statement: connection.execute(statement).fetchall()
    elif tool == "polars":
        import polars

        context = polars.SQLContext(records=polars.scan_parquet(files).select(COLUMNS))
        run = lambda statement: context.execute(statement).collect(engine="streaming").rows()
    elif tool == "chdb":
        from chdb import session

        opened = session.Session()
        opened.query(f"create view records as select {NAMES} from file('{folder}/*.parquet', Parquet)")
        run = lambda statement: str(opened.query(f"{statement} settings max_threads={THREADS}", "JSONCompact"))
    else:
        from datafusion import SessionConfig, SessionContext

        settings = SessionConfig().with_target_partitions(THREADS)
        if tool == "datafusion, filters pushed down":
            settings = settings.set("datafusion.execution.parquet.pushdown_filters", "true")
        context = SessionContext(settings)
        context.register_parquet("files", folder + "/")
        context.sql(f"create view records as select {NAMES} from files")
        run = lambda statement: [batch.to_pylist() for batch in context.sql(statement).collect()]
    return {name: best(lambda: run(statement)) for name, statement in json.loads(queries).items()}


def open_versions(tool, table, *versions):
    from deltalake import DeltaTable

    def manifest(version):
        return DeltaTable(table, version=version).get_add_actions(flatten=True)

    return {version: best(lambda: manifest(int(version))) for version in versions}


def main(what, *arguments):
    run = {"layout": layout, "pages": pages, "export": export, "sql": sql, "open": open_versions}[what]
    print(json.dumps(run(*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
