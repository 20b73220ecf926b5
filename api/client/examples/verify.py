"""Verifies a pulled version offline: python verify.py DIR [FIRST-KEY-ID]   (pip install pyarrow blake3 cryptography)

Written from catalog/proof/FORMAT.md alone; the numbers are those of its rules. Raises ValueError, and says why.
"""
import base64, datetime, hashlib, json, math, pathlib, re, sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq
from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EPOCH = datetime.datetime(1970, 1, 1)
COLUMNS = {"string": pa.types.is_string, "integer": pa.types.is_int64, "number": pa.types.is_float64,
           "boolean": pa.types.is_boolean, "timestamp": lambda t: t == pa.timestamp("us", "UTC"), "json": pa.types.is_string,
           "date": pa.types.is_date32, "decimal": lambda t: pa.types.is_decimal128(t) and t.precision == 28}


def need(holds, why):
    if not holds:
        raise ValueError(why)


def parse(text):
    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "a member occurs twice")
        return dict(pairs)
    return json.loads(text, object_pairs_hook=once, parse_constant=lambda name: need(False, name))


def number(value):
    """ECMAScript's Number::toString; integers of 64 bits keep all their digits."""
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return str(value)
    value = float(value)
    need(math.isfinite(value), "a number is not finite")
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value)!r}e0".split("e")[:2]
    whole, _, fraction = mantissa.partition(".")
    digits, point = (whole + fraction).lstrip("0"), len(whole) + int(exponent)
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        text = digits.ljust(point, "0")[:point] + ("." + digits[point:] if len(digits) > point else "")
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{point - 1:+d}"
    return "-" * (value < 0) + text


def members(pairs):
    """An object of members whose values are canonical text already."""
    ordered = sorted(pairs, key=lambda pair: pair[0].encode("utf-16-be"))
    return "{" + ",".join(canonical(name) + ":" + text for name, text in ordered) + "}"


def canonical(value):
    if isinstance(value, dict):
        return members([(name, canonical(item)) for name, item in value.items()])
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def without(value, *names):
    return {name: item for name, item in value.items() if name not in names}


def of_base64(text, length):
    raw = base64.b64decode(text, validate=True)
    need(len(raw) == length and base64.b64encode(raw).decode() == text, "not Base64 of that length")
    return raw


def signed(key, format_name, value, signature):
    try:
        key = Ed25519PublicKey.from_public_bytes(of_base64(key, 32))
        key.verify(of_base64(signature, 64), f"{format_name}\n{canonical(value)}".encode())
    except InvalidSignature:
        raise ValueError(f"a signature of {format_name} is wrong") from None


def time(text):
    form = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{0,5}[1-9]))?Z", text, re.ASCII)
    need(form, f"{text} is not a time")
    return datetime.datetime.fromisoformat(form[1]), (form[2] or "").ljust(6, "0")


def whole(value, least=0):
    need(type(value) is int and value >= least, f"{value} is not an integer of at least {least}")
    return value


def check_keys(document, first):
    need(document["format"] == "sluice-keys-1", "another format of keys")
    whole(document["sequence"]), time(document["issuedAt"])
    keys, before = document["keys"], None
    need(keys and first in (None, keys[0]["keyId"]), "the first key is another one")  # 1
    need(len({key["keyId"] for key in keys}) == len(keys), "a keyId occurs twice")  # 3
    for key in keys:
        need(key["keyId"] == hashlib.sha256(of_base64(key["publicKey"], 32)).hexdigest()[:16], "a keyId is wrong")
        need(key["algorithm"] == "Ed25519", "another algorithm")
        need((key["status"] == "current") == (key is keys[-1]), "the last key, and no other, is current")  # 3
        times = {name for name in ("retiredAt", "revokedAt") if name in key}
        allowed = {"current": [set()], "retired": [{"retiredAt"}], "revoked": [{"revokedAt"}, {"retiredAt", "revokedAt"}]}
        need(times in allowed[key["status"]], "the status and the times of a key differ")
        for name in {"createdAt"} | times:
            time(key[name])
        if before is None:
            need(key["endorsement"] is None, "the first key is endorsed")  # 2
        else:
            endorsement = key["endorsement"]
            need(set(endorsement) == {"by", "value"} and endorsement["by"] == before["keyId"], "endorsed by another key")
            claim = {"by": before["keyId"], **{name: key[name] for name in ("keyId", "publicKey", "createdAt")}}
            signed(before["publicKey"], "sluice-key-1", claim, endorsement["value"])
            need(before["status"] != "revoked" or time(key["createdAt"]) <= time(before["revokedAt"]), "endorsed too late")
        before = key
    signature = document["signature"]
    need(set(signature) == {"keyId", "publicKey", "value"}, "the signature has other members")
    need(all(signature[name] == keys[-1][name] for name in ("keyId", "publicKey")), "not signed by the last key")
    signed(signature["publicKey"], "sluice-keys-1", without(document, "signature"), signature["value"])
    return {key["keyId"]: key for key in keys}


def check_manifest(manifest, keys):
    need(manifest["format"] == "sluice-manifest-1", "another format of manifest")
    signature = manifest["signature"]
    need(set(signature) == {"algorithm", "keyId", "publicKey", "value", "endorsement"}, "the signature has other members")
    need(signature["algorithm"] == "Ed25519" and signature["keyId"] in keys, "signed by no key of the list")  # 5
    key = keys[signature["keyId"]]
    endorsement = key["endorsement"] and {**key["endorsement"], "createdAt": key["createdAt"]}
    need((key["publicKey"], endorsement) == (signature["publicKey"], signature["endorsement"]), "the key differs")
    need(key["status"] != "revoked", "the key is revoked")  # 6
    issued = time(manifest["issuedAt"])
    need(key["status"] != "retired" or issued <= time(key["retiredAt"]), "the key was retired")
    content = without(manifest, "signature", "urlsExpireAt")
    content["parts"] = [without(part, "url") for part in manifest["parts"]]
    signed(key["publicKey"], "sluice-manifest-1", content, signature["value"])


def check_parts(folder, manifest):
    parts, last, rows = manifest["parts"], None, 0
    names = [part["path"] for part in parts]
    need(len({name.lower() for name in names}) == len(names), "two parts have one path")  # 7
    need(set(names) == {file.name for file in folder.iterdir() if file.name.endswith(".parquet")}, "other files")
    for part in parts:
        need(re.fullmatch(r"(?![.-])[A-Za-z0-9._-]{1,192}\.parquet", part["path"]), "no path of a part")
        data = (folder / part["path"]).read_bytes()
        need(("size" in part) != ("bytes" in part), "no size, or two")
        size = part.get("size", part.get("bytes"))
        need((len(data), hashlib.sha256(data).hexdigest()) == (size, part["sha256"]), f"{part['path']} is damaged")
        begin, end = whole(part["firstVersion"], 1), whole(part["lastVersion"], 1)
        need(begin in ((1,) if last is None else (last["lastVersion"], last["lastVersion"] + 1)), "a version is left out")  # 8
        need(begin <= end and whole(part["rows"]) > end - begin, "fewer rows than versions")
        need(last is None or last["lastVersion"] != end or last["root"] == part["root"], "roots of one version differ")
        last, rows = part, rows + part["rows"]
    ends = (last["lastVersion"], last["root"]) if last else (0, "00" * 32)
    need(ends == (manifest["version"], manifest["root"]), "the parts end elsewhere")
    need(rows == manifest["recordCount"], "another number of records")


def timestamp(micros):
    text = (EPOCH + datetime.timedelta(microseconds=micros)).isoformat()
    return f'"{text.rstrip("0") if "." in text else text}Z"'


def day(date):
    return f'"{date.isoformat()}"'


def decimal(number):
    return f'"{number:f}"'


def records(path, contract):
    """The version and the canonical JSON of each row."""
    table = pq.ParquetFile(path).read()
    columns = []
    for field in contract["fields"]:
        column = table.column(field["name"])
        need(field["type"] in COLUMNS, f"{field['type']} is no type that this verifier knows")
        need(COLUMNS[field["type"]](column.type), f"{field['name']} is a {column.type}")
        need(("scale" in field) == (field["type"] == "decimal"), "a decimal, and nothing else, has a scale")
        need(field["type"] != "decimal" or column.type.scale == whole(field["scale"]) <= 18, "another scale")
        if field["type"] == "timestamp":
            column = pc.cast(column, pa.int64())
        as_text = {"json": str, "timestamp": timestamp, "date": day, "decimal": decimal}.get(field["type"], canonical)
        columns.append([None if value is None else (field["name"], as_text(value)) for value in column.to_pylist()])
    if contract["allowExtra"]:
        extra = [{} if text is None else parse(text) for text in table.column("_sluice_extra").to_pylist()]
    else:
        extra = [{}] * len(table)
    names = {field["name"] for field in contract["fields"]}
    need(all(type(more) is dict and not names & set(more) for more in extra), "the extra members are no object of others")
    need(pa.types.is_int64(table.column("_sluice_version").type), "no version column")
    for index, version in enumerate(table.column("_sluice_version").to_pylist()):
        pairs = [column[index] for column in columns if column[index]]
        pairs += [(name, canonical(value)) for name, value in extra[index].items()]
        yield version, members(pairs).encode()


def check_rows(folder, manifest):
    root, current, hasher, pending = bytes(32), 0, None, []
    context = "sluice 2026-11 content root v1"
    for part in manifest["parts"]:
        versions = []
        for version, record in records(folder / part["path"], manifest["schemaDef"]):
            if version != current:
                need(version == current + 1, "a version is out of order")
                root = hasher.digest() if hasher else root
                need(all(expected == root.hex() for expected in pending), "a root is wrong")  # 9
                hasher, current, pending = blake3(root, derive_key_context=context), version, []
            hasher.update(len(record).to_bytes(4, "little") + record)
            versions.append(version)
        ends = (len(versions), versions[0], versions[-1])
        need(ends == (part["rows"], part["firstVersion"], part["lastVersion"]), "the rows of a part differ")
        pending.append(part["root"])
    need(not hasher or all(expected == hasher.hexdigest() for expected in pending), "a root is wrong")


def verify(folder, first=None):
    keys = parse((folder / "keys.json").read_text("utf-8"))
    manifest = parse((folder / "manifest.json").read_text("utf-8"))
    check_manifest(manifest, check_keys(keys, first))
    check_parts(folder, manifest)
    check_rows(folder, manifest)
    return manifest, keys["keys"][0]["keyId"]


if __name__ == "__main__":
    manifest, key = verify(pathlib.Path(sys.argv[1]), *sys.argv[2:3])
    print(f"{manifest['slug']} version {manifest['version']}: {manifest['recordCount']} records, root {manifest['root']}, key {key}")
