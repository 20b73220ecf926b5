"""Compares a profile with what `duckdb` computes over the same rows, and prints JSON: the differences as texts, and how far
estimates are off, those of distinct values as shares and those of quantiles in percent of rank.

usage: compare_profile.py PROFILE EXPORT     the answer of `/profile` at the level `full`, and that of `/export`

Counts, extremes and frequent values must be equal; means and deviations within 1e-6 of their size; estimates of distinct
values within 14 % (four standard errors); quantiles within 5 % of rank (more than four standard errors of 2,048 rows), and
equal if the sample has all rows.
"""

import json
import sys

import duckdb

SQL = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
    "json": "JSON",
}
PERCENTS = {"p1": 1, "p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95, "p99": 99}


def sql_type(column):
    return f"DECIMAL(28, {column['scale']})" if column["type"] == "decimal" else SQL[column["type"]]


def named(column):
    return '"' + column["name"].replace('"', '""') + '"'


def literal(text):
    return "'" + str(text).replace("'", "''") + "'"


def main(profile, export):
    with open(profile, encoding="utf-8") as file:
        profile = json.load(file)
    database = duckdb.connect()
    # Texts of times keep their offset, so each is read as text and then cast.
    names = [column["name"] for column in profile["columns"]]
    raw = {column["name"]: "JSON" if column["type"] == "json" else "VARCHAR" for column in profile["columns"]}
    database.execute("SET TimeZone = 'UTC'")
    casts = ", ".join(f"CAST({named(column)} AS {sql_type(column)}) AS {named(column)}" for column in profile["columns"])
    listed = ", ".join(f"{literal(name)}: '{kind}'" for name, kind in raw.items())
    database.execute(
        f"CREATE TABLE rows AS SELECT {casts} FROM read_json('{export}', format='newline_delimited', columns={{{listed}}})"
    )
    found, off = [], {"distinct": [], "rank": []}

    def one(expression, *more):
        return database.execute(f"SELECT {expression} FROM rows" + "".join(more)).fetchone()[0]

    def equal(what, theirs, ours):
        if theirs != ours:
            found.append(f"{what}: duckdb has {theirs!r}, the profile {ours!r}")

    def near(what, theirs, ours, share=1e-6):
        if theirs is None or ours is None:
            equal(what, theirs, ours)
        elif abs(float(theirs) - float(ours)) > share * max(abs(float(theirs)), 1e-12):
            found.append(f"{what}: duckdb has {theirs!r}, the profile {ours!r}")

    equal("records", one("count(*)"), profile["records"])
    is_whole = profile["sampled"] == profile["records"]
    for name, column in zip(names, profile["columns"]):
        quoted, kind = named(column), column["type"]
        finite = f"CASE WHEN isfinite({quoted}) THEN {quoted} END" if kind == "number" else quoted
        text_of_json = f"CAST({quoted} AS VARCHAR)"
        equal(f"{name} nulls", one(f"count(*) - count({quoted})"), column["nulls"])
        distinct = one(f"count(DISTINCT {text_of_json if kind == 'json' else quoted})")
        if column["distinct"]["exact"]:
            equal(f"{name} distinct", distinct, column["distinct"]["about"])
        else:
            near(f"{name} distinct", distinct, column["distinct"]["about"], 0.14)
            off["distinct"].append(abs(column["distinct"]["about"] / distinct - 1))
        if kind in ("integer", "number", "decimal"):
            for figure, expression in (("min", "min({})"), ("max", "max({})")):
                theirs = one(expression.format(finite))
                ours = column.get(figure)
                equal(f"{name} {figure}", None if theirs is None else str(theirs) if kind == "decimal" else theirs, ours)
            near(f"{name} mean", one(f"fsum(CAST({finite} AS DOUBLE)) / count({finite})"), column.get("mean"))
            near(f"{name} deviation", one(f"stddev_samp(CAST({finite} AS DOUBLE))"), column.get("deviation"), 1e-5)
            equal(f"{name} negative", one(f"count(*) FILTER ({finite} < 0)"), column["negative"])
            equal(f"{name} zero", one(f"count(*) FILTER ({finite} = 0)"), column["zero"])
        if kind in ("timestamp", "date"):
            for figure, expression in (("first", "min"), ("last", "max")):
                theirs, ours = one(f"{expression}({quoted})"), column.get(figure)
                equal(f"{name} {figure}", theirs, None if ours is None else one(f"CAST('{ours}' AS {sql_type(column)})", " LIMIT 1"))
        if kind == "string":
            equal(f"{name} empty", one(f"count(*) FILTER ({quoted} = '')"), column["empty"])
            frequent(database, quoted, column, name, equal, found)
        if kind in ("string", "json"):
            text = quoted if kind == "string" else text_of_json
            length = column.get("length") or {}
            equal(f"{name} least length", one(f"min(length({text}))"), length.get("min"))
            equal(f"{name} greatest length", one(f"max(length({text}))"), length.get("max"))
            near(f"{name} mean length", one(f"avg(length({text}))"), length.get("mean"))
        if kind == "boolean":
            equal(f"{name} true", one(f"count(*) FILTER ({quoted})"), column["true"])
            equal(f"{name} false", one(f"count(*) FILTER (NOT {quoted})"), column["false"])
        for percent, value in (column.get("quantiles") or {}).items():
            rank(one, name, quoted, column, percent, value, is_whole, found, off["rank"])
    return {"differences": found, "off": off}


def frequent(database, quoted, column, name, equal, found):
    top = column["top"]
    # Beyond 768 different texts there are counts of the sample only.
    if not top or not all(value["exact"] for value in top):
        return
    counts = dict(
        database.execute(
            f"SELECT {quoted}, count(*) FROM rows WHERE {quoted} IS NOT NULL AND strlen({quoted}) <= 64 GROUP BY 1"
        ).fetchall()
    )
    for value in top:
        equal(f"{name} count of {value['value']!r}", counts.get(value["value"]), value["count"])
    most = sorted(counts.values(), reverse=True)[: len(top)]
    equal(f"{name} greatest counts", most, [value["count"] for value in top])
    values = database.execute(f"SELECT count({quoted}) FROM rows").fetchone()[0]
    equal(f"{name} other", values - sum(value["count"] for value in top), column["other"])


def rank(one, name, quoted, column, percent, value, is_whole, found, off):
    edge = f"CAST({literal(value)} AS {sql_type(column)})"
    values = one(f"count({quoted})")
    below = 100 * one(f"count(*) FILTER ({quoted} < {edge})") / values
    upto = 100 * one(f"count(*) FILTER ({quoted} <= {edge})") / values
    off.append(max(below - PERCENTS[percent], PERCENTS[percent] - upto, 0))
    slack = 0.0 if is_whole else 5.0
    if not below - slack <= PERCENTS[percent] <= upto + slack:
        found.append(f"{name} {percent}: {value!r} has {below} to {upto} percent of the values below it")


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout)
