"""Compares the files of a version with its lines of JSON, value by value and row by row, and prints the differences as a JSON
list of texts.

usage: compare_formats.py PROFILE FOLDER     the answer of `/profile`, which names columns and types, and a folder with
                                             `records.ndjson`, `records.csv`, `records.parquet` and `records.arrow`

`duckdb` reads the lines, CSV and Parquet, `pyarrow` the Arrow stream. In CSV a text that a spreadsheet would run has an
apostrophe before it; an empty cell is null, an empty text in quotes is a text.
"""

import json
import pathlib
import sys

import duckdb
import pyarrow.ipc

import compare_profile

# A cell that a spreadsheet runs, unless it is a number.
RUNS = "regexp_matches({0}, '^[=+\\-@\\t\\r]') AND NOT regexp_full_match({0}, '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?')"


def main(profile, folder):
    with open(profile, encoding="utf-8") as file:
        columns = json.load(file)["columns"]
    files = {end: str(pathlib.Path(folder) / f"records.{end}") for end in ("ndjson", "csv", "parquet", "arrow")}
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    names = [compare_profile.named(column) for column in columns]
    text = {name: "CAST({0} AS VARCHAR)".format(name) for name in names}

    def typed(source, value):
        """The rows of a source, numbered, with the types of the contract."""
        kinds = [compare_profile.sql_type(column).replace("JSON", "VARCHAR") for column in columns]
        cells = ", ".join(f"CAST({value(column, name)} AS {kind}) AS {name}" for column, name, kind in zip(columns, names, kinds))
        return f"SELECT row_number() OVER () AS row_of_file, {cells} FROM {source}"

    def in_spreadsheet(column, name):
        if column["type"] not in ("string", "json"):
            return name
        return f"CASE WHEN {RUNS.format(text[name])} THEN chr(39) || {text[name]} ELSE {text[name]} END"

    kinds = {column["name"]: "JSON" if column["type"] == "json" else "VARCHAR" for column in columns}
    listed = ", ".join(f"{compare_profile.literal(name)}: '{kind}'" for name, kind in kinds.items())
    lines = f"read_json({compare_profile.literal(files['ndjson'])}, format='newline_delimited', columns={{{listed}}})"
    as_is = lambda column, name: text[name] if column["type"] == "json" else name
    database.execute(f"CREATE TABLE exact AS {typed(lines, as_is)}")
    database.execute(f"CREATE TABLE spread AS {typed(lines, in_spreadsheet)}")
    texts = ", ".join(f"{compare_profile.literal(column['name'])}: 'VARCHAR'" for column in columns)
    cells = (
        f"read_csv({compare_profile.literal(files['csv'])}, header=true, auto_detect=false, delim=',', quote='\"', escape='\"', "
        f"nullstr='', allow_quoted_nulls=false, strict_mode=true, max_line_size=16777216, columns={{{texts}}})"
    )
    with pyarrow.ipc.open_stream(files["arrow"]) as stream:
        arrow = stream.read_all()
    database.register("stream", arrow)
    found = []
    for name, source, expected in (
        ("csv", cells, "spread"),
        ("parquet", f"read_parquet({compare_profile.literal(files['parquet'])})", "exact"),
        ("arrow", "stream", "exact"),
    ):
        database.execute(f"CREATE OR REPLACE TABLE theirs AS {typed(source, lambda column, name: name)}")
        for what, left, right in (("lacks", expected, "theirs"), ("adds", "theirs", expected)):
            rows = database.execute(f"SELECT * FROM {left} EXCEPT ALL SELECT * FROM {right} ORDER BY 1 LIMIT 3").fetchall()
            found.extend(f"{name} {what} {row!r}" for row in rows)
    if not database.execute("SELECT count(*) FROM exact").fetchone()[0]:
        found.append("no row was compared")
    return found


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout)
