"""The records of the bulk load: the same bytes on every machine and with every version of numpy.

usage: data.py ROWS BASE FOLDER     upload.ndjson, base.ndjson, upload.ndjson.truth.json

Of the rows of the upload 85 % are new, 10 % the same as an earlier row of the file (a tenth of those with its members in
another order and with spaces), 5 % the same as a row of the base. 1 % of the new rows have something in `note` that looks
like personal data and is none, so that whoever searches has to look twice; a record with personal data would reject the file
here. To be accepted: the new rows.
"""

import json
import os
import sys

import numpy as np

CHUNK = 50_000
SEED = 20260501
SYLLABLES = (
    "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu pa pe pi po pu ra re ri ro"
    " ru sa se si so su ta te ti to tu va ve vi vo vu za ze zi zo zu sta tre plo gri"
).split()
REGIONS = ["eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "kr-central"]


def splitmix(x):
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def column(seed, start, count, number):
    rows = np.arange(start, start + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return splitmix(splitmix(rows * np.uint64(64) + np.uint64(number)) ^ np.uint64(seed))


def vocabulary():
    words, seen, repairs = [], set(), 0
    for bits in column(7, 0, 2048 * 4, 1).reshape(2048, 4):
        length = 2 + int(bits[3] >> np.uint64(60)) % 3
        word = "".join(SYLLABLES[int(bits[place]) % 64] for place in range(length))
        while word in seen:
            word += SYLLABLES[repairs % 64]
            repairs += 1
        seen.add(word)
        words.append(word)
    return words


WORDS = vocabulary()


def check_digit(digits):
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str((10 - total % 10) % 10)


def decoy(bits):
    kind, a, b = bits % 5, (bits >> 8) & 0xFFFFFFFF, bits >> 40
    if kind == 0:
        serial = "4%014d" % (((a << 16) ^ b) % 10**14)
        return "serial " + serial + str((int(check_digit(serial)) + 1 + a % 9) % 10)
    if kind == 1:
        return "see @%s_%s" % (WORDS[a % 2048], WORDS[b % 2048])
    if kind == 2:
        return "on 2026-%02d-%02d" % (a % 12 + 1, b % 28 + 1)
    if kind == 3:
        return "fw v%d.%d.%d" % (a % 9, b % 20, a % 77)
    return "lot %08d" % (a % 10**8)


def rows(seed, start, count, with_decoys):
    """Distinct rows as lines."""
    h0, h1, h2, h3 = (column(seed, start, count, number) for number in range(4))
    lengths = (9 + (h1 >> np.uint64(61)).astype(np.int64)).tolist()
    drawn = [column(seed, start, count, 8 + number) for number in range(4)]
    picks = [((drawn[k // 4] >> np.uint64(11 * (k % 4))) & np.uint64(2047)).astype(np.int64) for k in range(16)]
    picks = np.stack(picks, axis=1).tolist()
    skewed = (h1 & np.uint64(0xFFFF)) * (h1 >> np.uint64(16) & np.uint64(0xFFFF)) >> np.uint64(20)
    devices = (skewed.astype(np.int64) % 4000).tolist()
    numbers = (h2 >> np.uint64(24)).tolist()
    values = (((h3 >> np.uint64(20)) % np.uint64(1000001)).astype(np.int64) - 500000).tolist()
    flags = ((h3 & np.uint64(7)) != 0).tolist()
    chosen = ((h2 & np.uint64(0xFFFFFF)) % np.uint64(100000)).tolist()
    for row, bits in enumerate(h0.tolist()):
        note = " ".join([WORDS[pick] for pick in picks[row][: lengths[row]]])
        if with_decoys and chosen[row] < 1000:
            note = note[:40] + " " + decoy(bits) + " " + note[41:]
        device = "sensor-%04d-%s" % (devices[row], REGIONS[devices[row] & 7])
        flag = "true" if flags[row] else "false"
        fields = ("ev_%016x" % bits, device, numbers[row], repr(values[row] / 1000), flag, note)
        yield '{"id":"%s","device":"%s","seq":%d,"value":%s,"ok":%s,"note":"%s"}\n' % fields


def reordered(line):
    """The same JSON value in other bytes."""
    row = json.loads(line)
    value = line.split('"value":', 1)[1].split(",", 1)[0]
    flag = "true" if row["ok"] else "false"
    fields = (json.dumps(row["note"]), flag, value, row["seq"], row["device"], row["id"])
    return '{ "note": %s, "ok": %s, "value": %s, "seq": %d, "device": "%s", "id": "%s" }\n' % fields


def every_row():
    start = 0
    while True:
        yield from rows(SEED, start, CHUNK, True)
        start += CHUNK


def main(count, base_count, folder):
    base, earlier = [], []
    with open(folder + "/base.ndjson", "w", buffering=1 << 20) as file:
        for start in range(0, base_count, CHUNK):
            lines = list(rows(SEED + 1, start, min(CHUNK, base_count - start), False))
            file.write("".join(lines))
            base.extend(lines[::10])
    new = 0
    fresh = every_row()
    with open(folder + "/upload.ndjson", "w", buffering=1 << 20) as file:
        for bits in column(SEED + 2, 0, count, 0).tolist():
            kind = bits % 100
            if kind < 10 and earlier:
                line = earlier[(bits >> 20) % len(earlier)]
                file.write(reordered(line) if (bits >> 8) % 10 == 0 else line)
            elif kind < 15 and base:
                file.write(base[(bits >> 20) % len(base)])
            else:
                line = next(fresh)
                file.write(line)
                new += 1
                if new % 4 == 0:
                    earlier.append(line)
    size = os.path.getsize(folder + "/upload.ndjson")
    truth = {"rows": count, "bytes": size, "base_rows": base_count, "accepted": new}
    with open(folder + "/upload.ndjson.truth.json", "w") as file:
        json.dump(truth, file)


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
