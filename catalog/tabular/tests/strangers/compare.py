"""Compares the records that the program makes of the files of strangers with what pandas and DuckDB read of them.

    python3 compare.py FOLDER PROGRAM      prints the table; FOLDER is what fetch.py filled, PROGRAM the example `infer`

The program gets no flags; a file that it asks about is read again with its first answer, and says so. Of a CSV the other
reader is pandas (`read_csv`, every cell as text), told the lines of the header that the program found, and `float` of Python
where a cell is a number. Of JSON it is Python's `json`, told the place of the records; of Parquet and Arrow, pyarrow. Dates
and times are read by pandas. So a row says `equal` if every cell of every record has the value that the other reader gives
it, and null where it has none.

Invariant: nothing of a file is left out silently. A record that only one side has, and a value that differs, are counted."""

import csv
import datetime
import decimal
import gzip
import io
import json
import math
import pathlib
import subprocess
import sys

import pandas

import fetch

NULLS = {"", "NA", "N/A", "n/a", "NULL", "null", "NaN", "nan", "None", "none", "nil", "-", "--", "?", ".", "#N/A", "<NA>", "\\N"}
MAX_WORDS = 90


def run(program, *arguments):
    result = subprocess.run([program, *arguments], capture_output=True, check=False)
    return result.stdout.decode("utf-8"), result.stderr.decode("utf-8", "replace")


def content(file):
    data = file.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def answered(program, file):
    """The inference, and the flags that answer its questions."""
    flags = []
    for _ in range(8):
        out, err = run(program, *flags, str(file))
        if not out.strip():
            return {"error": err.strip()}, flags
        found = json.loads(out)
        if "error" in found or not found["questions"]:
            return found, flags
        remedies = found["questions"][0]["remedies"]
        if not remedies:
            return {"error": found["questions"][0]["message"]}, flags
        flags += [remedies[0]["flag"]] + ([remedies[0]["value"]] if "value" in remedies[0] else [])
    return {"error": "more than 8 questions"}, flags


def rows_of_csv(file, reading):
    """Cells as pandas reads them, as texts, one list a column, and the columns by the names of the reading."""
    text = content(file).decode(reading.get("encoding", "utf-8"))
    skipped = set(reading.get("skipLines", []))
    header = reading.get("headerLine", 1)
    names = [column["from"] for column in reading["columns"]]
    skip = [line - 1 for line in skipped] + list(range(header))
    quote = reading.get("quote", '"')
    options = {"quoting": csv.QUOTE_NONE} if quote is None else {"quotechar": quote}
    if reading.get("escape") == "backslash":
        options |= {"escapechar": "\\", "doublequote": False}
    frame = pandas.read_csv(io.StringIO(text, newline=""), sep=reading.get("delimiter", ","), header=None, dtype=str,
                            keep_default_na=False, skiprows=skip, names=range(len(names)), index_col=False, **options)
    return [list(row) for row in frame.itertuples(index=False, name=None)]


def rows_of_json(file, reading):
    value = json.loads(content(file), parse_float=decimal.Decimal, parse_int=int)
    for token in reading.get("records", "").split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        value = value[int(token)] if isinstance(value, list) else value[token]
    if "members" in reading:
        return [{reading["members"]: name} | record for name, record in value.items()]
    return value if isinstance(value, list) else [value]


def rows_of_lines(file):
    lines = content(file).decode("utf-8").splitlines()
    return [json.loads(line, parse_float=decimal.Decimal) for line in lines if line.strip()]


def instant(text, parse):
    """The instant of a text in UTC, as pandas reads it."""
    if parse:
        parse = parse.replace("%S%.f", "%S.%f") if "." in text.split(":")[-1] else parse.replace("%.f", "")
    stamp = pandas.to_datetime(text, format=parse) if parse else pandas.Timestamp(text)
    return stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")


def is_equal(cell, value, kind, parse, decimal_sign):
    """Whether a stored value says what a cell of the file says."""
    if isinstance(cell, str):
        word = cell.strip()
        if kind == "string":
            return (cell == value) or (value is None and cell in ("", "\\N"))
        if value is None:
            return word in NULLS
        if kind in ("integer", "number", "decimal"):
            plain = word.replace(",", ".") if decimal_sign == "," else word
            if kind == "number":
                return float(plain) == value
            return decimal.Decimal(plain) == decimal.Decimal(str(value))
        if kind == "boolean":
            return word.lower() == str(value).lower()
        if kind == "date":
            day = pandas.to_datetime(word, format=parse) if parse else pandas.Timestamp(word)
            return day.date().isoformat() == value
        if kind == "timestamp":
            return instant(word, parse) == pandas.Timestamp(value)
        return plain_json(json.loads(word)) == plain_json(value)
    if cell is None:
        return value is None
    if isinstance(cell, bool) or isinstance(value, bool):
        return cell is value
    if isinstance(cell, (int, decimal.Decimal)):
        if kind == "decimal":
            return decimal.Decimal(cell) == decimal.Decimal(value)
        return float(cell) == float(value) and (isinstance(cell, decimal.Decimal) or int(cell) == int(value))
    if isinstance(cell, float):
        return cell == value or math.isnan(cell) and value is None
    if isinstance(cell, (dict, list)):
        return plain_json(cell) == plain_json(value)
    return cell == value


def plain_json(value):
    """A JSON value with every number as a double: the stored form has no other."""
    if isinstance(value, dict):
        return {name: plain_json(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain_json(item) for item in value]
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return float(value)
    return value


def compare(found, records, rows):
    """The number of values that differ, with the first one in words."""
    reading = found["reading"]
    kinds = {field["name"]: field["type"] for field in found["schemaDef"]["fields"]}
    is_csv = reading.get("format") == "csv"
    parses = {column.get("to"): column.get("parse") for column in reading.get("columns", [])}
    nulls = {column.get("to"): set(column.get("nulls", [])) for column in reading.get("columns", [])}
    named = {column["from"]: column["to"] for column in reading.get("columns", [])}
    wrong, first = 0, ""
    for place, (record, row) in enumerate(zip(records, rows)):
        if is_csv:
            cells = [(column["to"], cell) for column, cell in zip(reading["columns"], row) if column["to"]]
        else:
            cells = [(named.get(name, name), cell) for name, cell in row.items() if named.get(name, name)]
        for name, cell in cells:
            value, kind = record.get(name), kinds.get(name, "json")
            if not is_csv and (kind == "string" and isinstance(cell, str) or kind == "json"):
                same = plain_json(cell) == plain_json(value)
            elif value is None and isinstance(cell, str) and cell.strip() in nulls.get(name, ()):
                same = True
            else:
                try:
                    same = is_equal(cell, value, kind, parses.get(name), reading.get("decimal", "."))
                except (ValueError, TypeError, decimal.InvalidOperation) as problem:
                    same, value = False, f"{value} ({problem})"
            if not same:
                wrong += 1
                first = first or f"record {place + 1}, `{name}`: {cell!r} became {value!r}"
    return wrong, first


def row_of(folder, program, place):
    file = fetch.unpacked(folder, place)
    found, flags = answered(program, file)
    said = " ".join(flags)
    if "error" in found:
        return "refused", "", "", said, found["error"]
    kind = found["reading"].get("format", "json-lines")
    out, refusals = run(program, "--print", *flags, str(file))
    # Of a text, only line feeds end a line.
    records = [json.loads(line) for line in out.split("\n") if line]
    columns = len(found["schemaDef"]["fields"])
    try:
        rows = {"csv": lambda: rows_of_csv(file, found["reading"]), "json": lambda: rows_of_json(file, found["reading"]),
                "json-lines": lambda: rows_of_lines(file)}[kind]()
    except (ValueError, KeyError, TypeError, pandas.errors.ParserError) as problem:
        return "unread", len(records), columns, said, f"the other reader: {problem}"
    if kind == "csv":
        rows = [row for row in rows if any(cell != "" for cell in row)]
    if refusals:
        return "part", len(records), columns, said, refusals.strip().splitlines()[0].split(": ", 1)[-1]
    if len(rows) != len(records):
        return "differs", len(records), columns, said, f"the other reader has {len(rows)} records"
    wrong, first = compare(found, records, rows)
    if wrong:
        return "differs", len(records), columns, said, f"{wrong} values; {first}"
    text = " (one column of text)" if columns == 1 and kind == "csv" and found["columns"][0]["type"] == "string" else ""
    return "equal", len(records), columns, said, text.strip()


def main():
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    chosen = sys.argv[3:] or None
    counts = {}
    print("| File | Result | Records | Fields | Flags | Words |")
    print("|-|-|-|-|-|-|")
    for place, _ in fetch.rows():
        if chosen and not any(word in place for word in chosen):
            continue
        result, records, columns, flags, words = row_of(folder, program, place)
        counts[result] = counts.get(result, 0) + 1
        words = words.replace("|", "\\|").replace(str(folder), "").replace("\n", " ")[:MAX_WORDS * 2]
        print(f"| `{place}` | {result} | {records} | {columns} | {flags} | {words} |", flush=True)
    print()
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
