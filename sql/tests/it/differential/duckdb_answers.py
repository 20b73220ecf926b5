"""Answers statements with DuckDB: a line of JSON each, over the parts that the arguments name.

Input: a JSON text per line, the statement. Output: {"rows": [...]} or {"error": "..."} per line. A float and a decimal are
{"number": text}, so that NaN and every digit survive.
"""

import datetime
import decimal
import json
import sys

import duckdb

COLUMNS = "id, s, t, i, j, n, m, b, moment::TIMESTAMP AS moment, doc"


def cell(value):
    if isinstance(value, (float, decimal.Decimal)):
        return {"number": str(value)}
    if isinstance(value, (datetime.datetime, datetime.date)):
        return {"time": value.isoformat()}
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, list):
        return [cell(item) for item in value]
    return str(value)


def main():
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET TimeZone = 'UTC'")
    database.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    database.execute(f"CREATE TABLE records AS SELECT {COLUMNS} FROM read_parquet(?)", [sys.argv[1:]])
    for line in sys.stdin:
        try:
            rows = database.execute(json.loads(line)).fetchall()
            answer = {"rows": [[cell(value) for value in row] for row in rows]}
        except duckdb.Error as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
