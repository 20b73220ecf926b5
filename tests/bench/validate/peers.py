"""Validation by others: the lines of `validate.ndjson` in FOLDER, in memory, one thread.

usage: peers.py msgspec FOLDER

Parses each line and checks the names and types of its members, strictly: no member more, none less, no conversion. Reading
the file and making the decoder are not counted. Prints one JSON object: seconds of processors, records accepted and refused.
"""

import json
import resource
import sys


def by_msgspec():
    import msgspec

    # Without the collector of cycles, of which there are none: the faster way.
    class Record(msgspec.Struct, forbid_unknown_fields=True, gc=False):
        id: str
        device: str
        seq: int
        value: float
        ok: bool
        note: str

    return msgspec.json.Decoder(Record).decode, msgspec.MsgspecError


def used():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def main(tool, folder):
    decode, wrong = {"msgspec": by_msgspec}[tool]()
    with open(folder + "/validate.ndjson", "rb") as file:
        lines = file.readlines()
    refused = 0
    begun = used()
    for line in lines:
        try:
            decode(line)
        except wrong:
            refused += 1
    print(json.dumps({"cpu": used() - begun, "accepted": len(lines) - refused, "refused": refused}))


main(*sys.argv[1:])
