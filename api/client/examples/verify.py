"""Verifies a pulled version offline: python verify.py DIR [FIRST-KEY-ID]   (pip install pyarrow blake3 cryptography)

Written from catalog/proof/FORMAT.md alone; the numbers in the messages are those of its rules.
"""
import json, pathlib, re, sys
from base64 import b64decode
from decimal import Decimal
from hashlib import sha256

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pyarrow import BufferReader
from pyarrow.parquet import ParquetFile


def once(pairs):
    return dict(pairs) if len(dict(pairs)) == len(pairs) else sys.exit("a member is there twice")


def canonical(value):  # RFC 8785
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and (value == 0 or 1e-6 <= abs(value) < 1e21):
        return format(Decimal(repr(value + 0.0)).normalize(), "f")
    return repr(value).replace("e-0", "e-") if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def record(row):  # its canonical JSON with the length before it
    read = {"json": json.loads, "timestamp": lambda at: re.sub(r"(\.\d*?)0+$", r"\1", at.isoformat()[:-6]) + "Z"}
    members = {name: read.get(fields[name], lambda same: same)(row[name]) for name in fields if row[name] is not None}
    text = canonical(json.loads(row.get("_sluice_extra") or "{}") | members).encode()
    return len(text).to_bytes(4, "little") + text


def signed(key, value, name, document):  # raises InvalidSignature
    message = f"{name}\n{canonical(document)}".encode()
    Ed25519PublicKey.from_public_bytes(b64decode(key["publicKey"])).verify(b64decode(value, validate=True), message)


read = lambda name: json.loads(pathlib.Path(sys.argv[1], name).read_bytes(), object_pairs_hook=once)
document, manifest = read("keys.json"), read("manifest.json")
keys, signature, parts = document["keys"], manifest.pop("signature"), manifest["parts"]
formats = document["format"], manifest["format"], {one["algorithm"] for one in (signature, *keys)}
assert formats == ("sluice-keys-1", "sluice-manifest-1", {"Ed25519"}), "it is of another format"
assert sys.argv[2:] in ([], [keys[0]["keyId"]]) and keys[0]["endorsement"] is None, "1, 2: it is another first key"
found = [(sha256(b64decode(key["publicKey"])).hexdigest()[:16], key is keys[-1]) for key in keys]
assert found == [(key["keyId"], key["status"] == "current") for key in keys], "3: another id, or the last not current"
for before, key in zip(keys, keys[1:]):
    assert key["createdAt"][:-1] <= before.get("revokedAt", "9999Z")[:-1], "2: a key is endorsed by a revoked one"
    endorsed = {name: key[name] for name in ("keyId", "publicKey", "createdAt")} | {"by": before["keyId"]}
    signed(before, key["endorsement"]["value"], "sluice-key-1", endorsed)
signed(keys[-1], document.pop("signature")["value"], "sluice-keys-1", document)

key = {key["keyId"]: key for key in keys}[signature["keyId"]]
endorsement = key["endorsement"] and key["endorsement"] | {"createdAt": key["createdAt"]}
assert (signature["publicKey"], signature["endorsement"]) == (key["publicKey"], endorsement), "5: it is another key"
assert key["status"] != "revoked", "6: the key was revoked"
assert manifest["issuedAt"][:-1] <= key.get("retiredAt", "9999Z")[:-1], "6: the key was retired before"
unsigned = manifest.pop("urlsExpireAt", None), [part.pop("url", None) for part in parts]
signed(key, signature["value"], "sluice-manifest-1", manifest)

assert {path.name for path in pathlib.Path(sys.argv[1]).glob("*.parquet")} == {part["path"] for part in parts}, "7"
fields = {field["name"]: field["type"] for field in manifest["schemaDef"]["fields"]}
version, count, roots, hashers = 0, 0, {0: bytes(32)}, {}
for part in parts:
    content = pathlib.Path(sys.argv[1], part["path"]).read_bytes()
    assert [len(content), sha256(content).hexdigest()] == [part.get("size", part.get("bytes")), part["sha256"]], f"7: {part['path']}"
    rows = ParquetFile(BufferReader(content)).read(use_threads=False).to_pylist()
    told = [rows[0]["_sluice_version"], rows[-1]["_sluice_version"], len(rows)]
    assert told == [part[name] for name in ("firstVersion", "lastVersion", "rows")], f"8: {part['path']}"
    for count, row in enumerate(rows, count + 1):
        assert row["_sluice_version"] in (version, version + 1), f"8: rows out of order in {part['path']}"
        version = row["_sluice_version"]
        start = blake3(roots[version - 1], derive_key_context="sluice 2026-11 content root v1")
        roots[version] = hashers.setdefault(version, start).update(record(row)).digest()
assert [roots[part["lastVersion"]].hex() for part in parts] == [part["root"] for part in parts], "9: other records"
assert [version, count, roots[version].hex()] == [manifest[name] for name in ("version", "recordCount", "root")], "8"
print(f"{manifest['slug']} version {version}: {count} records as {key['keyId']} signed; first key {keys[0]['keyId']}")
