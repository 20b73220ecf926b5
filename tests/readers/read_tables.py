"""Reads what the service stores with readers nobody here wrote, and prints what they saw as one JSON document.

usage: read_tables.py table FOLDER [VERSION …]
                                         every version of a Delta table, or these, with `deltalake` and with `polars`
       read_tables.py parts FOLDER       a pulled version, with `duckdb`, `polars` and `pyarrow`, in the order of its manifest
       read_tables.py files FOLDER       a version as `records.csv`, `records.parquet` and `records.arrow`, with `duckdb`, `polars` and
                                         `pyarrow`
       read_tables.py sql FOLDER FILE    the statements of FILE, a JSON list, over the records of a pulled version, with `duckdb`

`table` gives for each reader and version the rows in the order of their hidden version and ordinal; `parts` for each
reader the rows as they come; both with every column. `files` gives the rows for each reader and format, of CSV as texts.
`sql` gives the rows of each statement. Instants are whole microseconds since 1970, days and decimals are texts.
"""

import datetime
import decimal
import json
import pathlib
import sys

import deltalake
import duckdb
import polars
import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

HIDDEN = ("_sluice_key", "_sluice_contribution", "_sluice_agent", "_sluice_version", "_sluice_ordinal")


def plain(value, kind):
    if isinstance(value, decimal.Decimal):
        # duckdb has the sum of integers as a decimal of 38 digits.
        return int(value) if (kind.precision, kind.scale) == (38, 0) else f"{value:f}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def columns(table):
    """The columns of an Arrow table by name, as values that JSON has."""
    for name, column in zip(table.column_names, table.columns):
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.int64())
        yield name, [plain(value, column.type) for value in column.to_pylist()]


def rows(table):
    by_name = dict(columns(table))
    return [dict(zip(by_name, row)) for row in zip(*by_name.values())]


def tables(folder, *versions):
    def with_deltalake(version):
        table = deltalake.DeltaTable(folder, version=version)
        return pyarrow.table(deltalake.QueryBuilder().register("records", table).execute("select * from records"))

    def with_polars(version):
        return polars.scan_delta(folder, version=version).collect().to_arrow()

    def ordered(table):
        return sorted(rows(table), key=lambda row: (row["_sluice_version"], row["_sluice_ordinal"]))

    versions = [int(version) for version in versions] or range(deltalake.DeltaTable(folder).version() + 1)
    readers = {"deltalake": with_deltalake, "polars of the table": with_polars}
    return {
        name: {str(version): ordered(reader(version)) for version in versions}
        for name, reader in readers.items()
    }


def files_of(folder):
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    return [str(folder / part["path"]) for part in manifest["parts"]]


def duck():
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    return connection


def parts(folder):
    files = files_of(folder)
    with_duckdb = duck().read_parquet(files).to_arrow_table()
    with_polars = polars.scan_parquet(files).collect().to_arrow()
    with_pyarrow = pyarrow.concat_tables([pyarrow.parquet.read_table(file, partitioning=None) for file in files])
    return {"duckdb": rows(with_duckdb), "polars": rows(with_polars), "pyarrow": rows(with_pyarrow)}


def csv_with_duckdb(file):
    options = "all_varchar = true, header = true, nullstr = '', allow_quoted_nulls = false, max_line_size = 16000000"
    return duck().sql(f"select * from read_csv('{file}', {options})").to_arrow_table()


def csv_with_polars(file):
    # No type is guessed.
    return polars.read_csv(file, infer_schema=False).to_arrow()


def csv_with_pyarrow(file):
    header = pyarrow.csv.open_csv(file).schema.names
    return pyarrow.csv.read_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(block_size=64 << 20),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pyarrow.string() for name in header},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def files(folder):
    csv, parquet, arrow = (f"{folder}/records.{ending}" for ending in ("csv", "parquet", "arrow"))
    readers = {
        "duckdb of csv": lambda: csv_with_duckdb(csv),
        "polars of csv": lambda: csv_with_polars(csv),
        "pyarrow of csv": lambda: csv_with_pyarrow(csv),
        "duckdb of parquet": lambda: duck().read_parquet(parquet).to_arrow_table(),
        "polars of parquet": lambda: polars.read_parquet(parquet).to_arrow(),
        "pyarrow of parquet": lambda: pyarrow.parquet.read_table(parquet, partitioning=None),
        "polars of arrow": lambda: polars.read_ipc_stream(arrow).to_arrow(),
        "pyarrow of arrow": lambda: pyarrow.ipc.open_stream(arrow).read_all(),
    }
    return {name: rows(reader()) for name, reader in readers.items()}


def sql(folder, file):
    connection = duck()
    hidden = ", ".join(HIDDEN)
    view = f"create view records as select * exclude ({hidden}) from read_parquet({files_of(folder)!r})"
    connection.execute(view)

    def answer(statement):
        table = connection.sql(statement).to_arrow_table()
        return [list(row) for row in zip(*(values for _, values in columns(table)))]

    return [answer(statement) for statement in json.loads(pathlib.Path(file).read_text())]


def main(what, *arguments):
    answer = {"table": tables, "parts": parts, "files": files, "sql": sql}[what](*arguments)
    json.dump(answer, sys.stdout, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
