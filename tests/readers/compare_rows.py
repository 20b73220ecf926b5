"""Compares pages of rows that were filtered and ordered with what `duckdb` answers over the same rows, and prints the
differences as a JSON list of texts.

usage: compare_rows.py PROFILE EXPORT PAGES    the answer of `/profile`, which names columns and types, that of `/export`, and a
                                               JSON list of pages

A page is `{"filters": [[column, operator, value]], "sort": [column, "asc" or "desc"] or null, "offset": 0, "rows": [numbers],
"total": count}`; rows are numbered from 1 in the order of the version, in which equal values stay. Nulls come last.
"""

import json
import sys

import duckdb

import compare_profile

OPERATORS = {
    "is": "{0} = {1}",
    "not": "{0} IS DISTINCT FROM {1}",
    "less": "{0} < {1}",
    "greater": "{0} > {1}",
    "has": "contains(CAST({0} AS VARCHAR), {1})",
    "null": "{0} IS NULL",
    "some": "{0} IS NOT NULL",
}
PAGE = 50


def main(profile, export, pages):
    with open(profile, encoding="utf-8") as file:
        columns = json.load(file)["columns"]
    with open(pages, encoding="utf-8") as file:
        pages = json.load(file)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    named = {column["name"]: compare_profile.named(column) for column in columns}
    kinds = {column["name"]: compare_profile.sql_type(column) for column in columns}
    listed = ", ".join(f"{compare_profile.literal(name)}: '{'JSON' if kind == 'JSON' else 'VARCHAR'}'" for name, kind in kinds.items())
    casts = ", ".join(f"CAST({named[name]} AS {kind}) AS {named[name]}" for name, kind in kinds.items())
    lines = f"read_json({compare_profile.literal(export)}, format='newline_delimited', columns={{{listed}}})"
    database.execute(f"CREATE TABLE rows AS SELECT row_number() OVER () AS place, {casts} FROM {lines}")
    found = []
    for page in pages:
        conditions = ["true"]
        for name, operator, value in page["filters"]:
            text = compare_profile.literal(value)
            edge = text if operator == "has" else f"CAST({text} AS {kinds[name]})"
            conditions.append(OPERATORS[operator].format(named[name], edge))
        where = " AND ".join(f"({condition})" for condition in conditions)
        order = "" if page["sort"] is None else f"{named[page['sort'][0]]} {page['sort'][1]} NULLS LAST, "
        total = database.execute(f"SELECT count(*) FROM rows WHERE {where}").fetchone()[0]
        rows = database.execute(
            f"SELECT place FROM rows WHERE {where} ORDER BY {order}place LIMIT {PAGE} OFFSET {page['offset']}"
        ).fetchall()
        rows = [place for place, in rows]
        if (rows, total) != (page["rows"], page["total"]):
            asked = {name: page[name] for name in ("filters", "sort", "offset")}
            found.append(f"{asked}: duckdb has {total}: {rows}, the page {page['total']}: {page['rows']}")
    return found


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout)
