#!/usr/bin/env python3
"""Makes unicode-characters.ndjson.gz from UnicodeData.txt, as Debian's package unicode-data carries it.

One record per named code point, in the order of the file. The markers of ranges (`<…, First>` and `<…, Last>`) are
left out: they name no character. Equal input makes equal bytes.

    apt-get install unicode-data
    ./make.py [/usr/share/unicode/UnicodeData.txt]
"""

import gzip
import io
import json
import pathlib
import sys

SOURCE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode/UnicodeData.txt")
TARGET = pathlib.Path(__file__).with_name("unicode-characters.ndjson.gz")


def code_point(hexadecimal):
    return f"U+{hexadecimal}"


def decomposition(field):
    """The mapping with its tag, if it has one, each code point in the form of the other fields."""
    return " ".join(part if part.startswith("<") else code_point(part) for part in field.split())


def record(line):
    """The record of one line; field numbers are those of Unicode Standard Annex 44, section 5.7."""
    field = line.rstrip("\n").split(";")
    assert len(field) == 15, line
    members = {
        "codePoint": code_point(field[0]),
        "value": int(field[0], 16),
        "name": field[1],
        "category": field[2],
        "combiningClass": int(field[3]),
        "bidiClass": field[4],
        "decomposition": decomposition(field[5]),
        "numericValue": field[8],
        "mirrored": field[9] == "Y",
        "unicode1Name": field[10],
        "upper": field[12] and code_point(field[12]),
        "lower": field[13] and code_point(field[13]),
        "title": field[14] and code_point(field[14]),
    }
    return {name: value for name, value in members.items() if value != ""}


def main():
    text = io.StringIO()
    for line in SOURCE.read_text(encoding="ascii").splitlines():
        name = line.split(";", 2)[1]
        if not name.endswith((", First>", ", Last>")):
            json.dump(record(line), text, separators=(",", ":"))
            text.write("\n")
    # The header has no name and no time.
    TARGET.write_bytes(gzip.compress(text.getvalue().encode("ascii"), compresslevel=9, mtime=0))


main()
