"""Writes the files of this folder with the libraries of others; the versions are in `versions.txt`.

    python3 -m venv venv && venv/bin/pip install duckdb openpyxl pandas polars pyarrow xlsxwriter
    venv/bin/python write.py
"""

import datetime as dt
import decimal
import importlib.metadata
import pathlib
import uuid

import duckdb
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import xlsxwriter
from openpyxl.styles import numbers

HERE = pathlib.Path(__file__).parent
D = decimal.Decimal


def write(name):
    return str(HERE / name)


trips = pd.DataFrame(
    {
        "Trip ID": [1, 2, 3],
        "started": pd.to_datetime(["2024-05-01 08:00:00", "2024-05-01 08:00:00.123456", None], format="ISO8601"),
        "ended": pd.to_datetime(["2024-05-01T10:00:00+02:00", None, "2024-05-02T10:00:00+02:00"], format="ISO8601"),
        "stops": [["07", "x", None], [], None],
        "fare": [D("12.50"), D("0.05"), None],
        "km": [1.5, float("nan"), 3.0],
        "line": pd.Categorical(["A", "B", "A"]),
        "round_trip": [True, False, True],
    }
)
trips.to_parquet(write("pandas.parquet"), compression="gzip")
trips.to_feather(write("pandas.feather"))

nested = pa.table(
    {
        "list": pa.array([["07", "x", None]], pa.list_(pa.string())),
        "struct": pa.array(
            [{"price": D("3.50"), "tags": [("a", 1), ("b", None)], "at": dt.time(10, 0)}],
            pa.struct([
                ("price", pa.decimal128(38, 2)),
                ("tags", pa.map_(pa.string(), pa.int32())),
                ("at", pa.time64("us")),
            ]),
        ),
        "numbered": pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string())),
        "bytes": pa.array([b"caf\xc3\xa9"], pa.binary()),
        "photo": pa.array([b"\xff\xd8\xff"], pa.binary()),
        "exact": pa.array([D("3.500000000000000000")], pa.decimal128(38, 18)),
        "whole": pa.array([D("7")], pa.decimal128(20, 0)),
        "big": pa.array([2**64 - 1], pa.uint64()),
        "fine": pa.array([1714550400123456789], pa.timestamp("ns")),
        "took": pa.array([dt.timedelta(days=1, seconds=90)], pa.duration("us")),
        "day": pa.array([dt.date(2020, 2, 29)], pa.date32()),
        "infinite": pa.array([float("inf")], pa.float64()),
    }
)
pa.parquet.write_table(nested, write("pyarrow.parquet"), compression="brotli")
with pa.ipc.new_stream(write("pyarrow.arrows"), nested.schema) as out:
    out.write_table(nested)

duckdb.sql(
    f"""COPY (SELECT uuid '12345678-9abc-def0-1234-56789abcdef0' AS id, TIME '10:00:00.5' AS at,
        INTERVAL '2 months 3 days' AS span, 3.5::DECIMAL(38, 18) AS exact, DATE '2020-02-29' AS day,
        TIMESTAMP '2024-03-31 02:30:00' AS local, [1, NULL] AS list, {{'a': 'x', 'b': [true]}} AS struct)
        TO '{write("duckdb.parquet")}' (FORMAT parquet)"""
)

pl.DataFrame(
    {
        "name": ["a", "b"],
        "at": [dt.datetime(2024, 5, 1, 8), None],
        "category": pl.Series(["x", "y"], dtype=pl.Categorical),
        "took": [dt.timedelta(seconds=90), None],
        "nested": [{"n": 1}, None],
    }
).write_ipc(write("polars.arrow"), compression="zstd")

book = openpyxl.Workbook()
sheet = book.active
sheet.title = "Stations"
sheet.append(["Station ID", "Opened", "Elevation (m)", "Seen", "Ratio", "Open at", "Note"])
rows = [
    ["0017", dt.date(1964, 5, 1), 9.5, dt.datetime(2024, 5, 1, 8, 30), "=1/0", dt.time(10, 30), "a_x000D_b"],
    ["0018", dt.date(2001, 12, 24), 120, dt.datetime(2024, 5, 2, 9, 0, 0, 500000), 2, dt.time(23, 59, 59), None],
]
for row in rows:
    sheet.append(row)
sheet["E2"] = "#DIV/0!"
sheet["E2"].data_type = "e"
sheet.merge_cells("A5:B5")
sheet["A5"] = "0019"
sheet.row_dimensions[3].hidden = True
sheet.column_dimensions["G"].hidden = True
other = book.create_sheet("Readme")
other["A1"] = "about"
book.create_sheet("Secret").sheet_state = "hidden"
book.save(write("openpyxl.xlsx"))

formulas = openpyxl.Workbook()
formulas.active.append(["n", "double"])
formulas.active.append([1, "=A2*2"])
formulas.save(write("formulas.xlsx"))

book = xlsxwriter.Workbook(write("xlsxwriter.xlsx"), {"strings_to_numbers": False})
book.add_worksheet("Empty")
sheet = book.add_worksheet("Data")
day, span = book.add_format({"num_format": "yyyy-mm-dd"}), book.add_format({"num_format": "[h]:mm"})
sheet.write_row(0, 0, ["Report 2024"])
sheet.write_row(2, 1, ["n", "day", "took", "mixed", "total", "flag"])
for at in range(3):
    sheet.write_number(3 + at, 1, at + 1)
    sheet.write_datetime(3 + at, 2, dt.datetime(2024, 1, 1 + at), day)
    sheet.write_number(3 + at, 3, 1.5 + at, span)
    sheet.write(3 + at, 4, at if at else "n/a")
    sheet.write_formula(3 + at, 5, f"=B{4 + at}*2", None, (at + 1) * 2)
    sheet.write_boolean(3 + at, 6, at == 0)
book.close()

names = ["duckdb", "openpyxl", "pandas", "polars", "pyarrow", "xlsxwriter"]
(HERE / "versions.txt").write_text("".join(f"{name} {importlib.metadata.version(name)}\n" for name in names))
