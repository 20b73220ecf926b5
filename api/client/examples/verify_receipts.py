"""Verifies receipts and days of the ledger offline: python verify_receipts.py KEYS FILE…   (pip install pyarrow blake3 cryptography)

Written from catalog/proof/FORMAT.md alone; the numbers are those of its rules. Uses the canonical JSON, the keys document and the
signatures of verify.py beside it. Raises ValueError, and says why.
"""
import base64, datetime, hashlib, json, pathlib, sys, urllib.parse
from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from verify import EPOCH, canonical, check_keys, need, of_base64, parse, signed, time, whole, without

TEXTS = ["id", "asset", "kind", "key", "subject", "actor", "debitAccount", "creditAccount"]
NUMBERS = ["at", "line", "amount", "debitSeq", "debitAfter", "creditSeq", "creditAfter"]
OFFER = {"version", "resourceUrl", "scheme", "network", "asset", "payTo", "amount", "validUntil"}
RECEIPT = {"version", "resourceUrl", "network", "payer", "issuedAt"}


def may_sign(key, issued, revoked_may=False):  # 6, 13, 17
    need(key["status"] != "revoked" or revoked_may, "the key is revoked")
    need("retiredAt" not in key or issued <= time(key["retiredAt"]), "the key was retired")


def statement(value, format_name, keys):
    """A sale receipt or a query receipt: rules 5 and 6."""
    need(value["format"] == format_name, "another format")
    signature = value["signature"]
    need(set(signature) == {"algorithm", "keyId", "publicKey", "value", "endorsement"}, "the signature has other members")
    need(signature["algorithm"] == "Ed25519" and signature["keyId"] in keys, "signed by no key of the list")
    key = keys[signature["keyId"]]
    endorsement = key["endorsement"] and {**key["endorsement"], "createdAt": key["createdAt"]}
    need((key["publicKey"], endorsement) == (signature["publicKey"], signature["endorsement"]), "the key differs")
    may_sign(key, time(value["issuedAt"]))
    signed(key["publicKey"], format_name, without(value, "signature"), signature["value"])
    return value


def sale(value, keys):
    statement(value, "sluice-sale-1", keys)
    is_dataset = value["item"].startswith("dataset:")
    need(is_dataset or value["item"].startswith("unit:"), "no item")
    need(("contentRoot" in value) == is_dataset and not (is_dataset and "bodySha256" in value), "another content")
    need(whole(value["feeMicro"]) <= whole(value["priceMicro"]), "the fee is more than the price")
    need(("transaction" in value) == (value["paidWith"] == "x402"), "a transaction is missing, or too many")
    need(value["approvedBy"] in (None, "person") and {"saleId", "version", "buyer", "agent", "ledgerEvent"} <= set(value), "cut")
    time(value["at"])
    return value


def query(value, keys):
    statement(value, "sluice-query-1", keys)
    need((value["why"] == []) == value["reproducible"], "the reasons contradict")  # 12
    need(value.get("nextOffset", value.get("offset", 0) + value["rowCount"]) == value.get("offset", 0) + value["rowCount"], "rows")
    return value


def answers(value, answer):
    """True if a query receipt is about this answer."""
    hashed = canonical({name: answer[name] for name in ("columns", "rows", "truncated")})
    return hashlib.sha256(hashed.encode()).hexdigest() == value["answer"]


def instant(second):
    return (datetime.datetime.fromtimestamp(whole(second), datetime.timezone.utc).replace(tzinfo=None), "000000")


def of_url(part):
    raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    need(base64.urlsafe_b64encode(raw).decode().rstrip("=") == part, "not Base64 for URLs")
    return raw


def terms(jws, keys):
    """An offer or a receipt of x402."""
    parts = jws.split(".")
    need(len(parts) == 3, "not three parts")
    header, payload = (parse(of_url(part).decode()) for part in parts[:2])
    need(set(header) == {"alg", "kid"} and header["alg"] == "EdDSA", "another header")
    did, _, name = header["kid"].partition("#")
    need(name in keys, "signed by no key of the list")  # 13
    members = RECEIPT if "payer" in payload else OFFER
    need(set(payload) - {"transaction"} == members and ("payer" in payload or "transaction" not in payload), "other members")
    need(payload["version"] == 1, "another version")
    need(did == "did:web:" + urllib.parse.urlsplit(payload["resourceUrl"]).netloc.lower().replace(":", "%3A"), "another service")  # 14
    may_sign(keys[name], instant(payload["issuedAt"] if "payer" in payload else payload["validUntil"] - 300))
    try:
        key = Ed25519PublicKey.from_public_bytes(of_base64(keys[name]["publicKey"], 32))
        key.verify(of_url(parts[2]), f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature:
        raise ValueError("the signature is wrong") from None
    return payload


def day(lines, keys):
    """A day of the ledger: its date, and the events by their ids, each with the sum of its amounts."""
    head, *movements = map(parse, lines)
    need(head["format"] == "sluice-ledger-day-1" and head["seals"], "another format, or no seal")
    number, seals, events = whole(head["day"]), head["seals"], {}
    hasher = blake3(b"sluice-ledger-day-1\n" + bytes.fromhex(seals[0]["before"]) + number.to_bytes(8, "little"))
    for move in movements:
        for text in (move[name].encode() for name in TEXTS):
            hasher.update(len(text).to_bytes(8, "little") + text)
        for name in NUMBERS:
            hasher.update(move[name].to_bytes(8, "little", signed=True))
        need(move["at"] // 86_400_000_000 == number, "a movement of another day")  # 18
        event = events.setdefault(move["id"], {**{name: move[name] for name in TEXTS[:6]}, "sum": 0})
        event["sum"] += move["amount"]
    need((str(number), hasher.hexdigest()) == (seals[0]["day"], seals[0]["hash"]), "the hash of the day is another")  # 15
    for before, seal in zip(seals, seals[1:]):
        need((str(int(before["day"]) + 1), before["hash"]) == (seal["day"], seal["before"]), "a seal does not follow")  # 16
    for seal in seals:  # 17
        need(seal["keyId"] in keys, "sealed by no key of the list")
        key = keys[seal["keyId"]]
        may_sign(key, time(seal["sealedAt"]), revoked_may=seal is not seals[-1])
        signed(key["publicKey"], "sluice-seal-1", without(seal, "keyId", "signature"), seal["signature"])
    return {"date": (EPOCH + datetime.timedelta(days=number)).date().isoformat(), "events": events}


def is_in(receipt, events):
    """True if a day of the ledger has the event of a sale receipt."""
    event = events.get(receipt["ledgerEvent"], {})
    kind = "trial_sale" if receipt["paidWith"] == "given" else "sale"
    return [event.get(name) for name in ("kind", "key", "sum")] == [kind, receipt["saleId"], receipt["priceMicro"]]


def verify(path, keys):
    try:
        return verified(path, keys)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, json.JSONDecodeError) as error:  # cut, or of other types
        raise ValueError(f"not a whole document: {error!r}") from None


def verified(path, keys):
    text = path.read_text("utf-8").strip()
    need(text, "an empty file")
    if text.startswith("eyJ"):
        return "terms", terms(text, keys)
    lines = text.splitlines()
    if '"sluice-ledger-day-1"' in lines[0]:
        return "day", day(lines, keys)
    value = parse(text)
    if {"columns", "rows", "truncated"} <= set(value):
        return "answer", value
    kinds = {"sluice-sale-1": ("sale", sale), "sluice-query-1": ("query", query)}
    kind, check = kinds.get(value["format"], (None, None))
    need(check, "a format that this verifier does not know")
    return kind, check(value, keys)


def main(keys, *files):
    """Verifies every file. If the day of the ledger of a sale is among them, it has the sale; if answers to queries are, each
    query receipt is about one of them."""
    document = check_keys(parse(pathlib.Path(keys).read_text("utf-8")), None)
    found = [verify(pathlib.Path(name), document) for name in files]
    days = {value["date"]: value["events"] for kind, value in found if kind == "day"}
    given = [value for kind, value in found if kind == "answer"]
    for kind, value in found:
        if kind == "sale" and value["at"][:10] in days:
            need(is_in(value, days[value["at"][:10]]), "the ledger has no such sale on that day")
        if kind == "query" and given:
            need(any(answers(value, answer) for answer in given), "another answer")
    for kind, value in found:
        print(json.dumps({kind: value}))


if __name__ == "__main__":
    main(*sys.argv[1:])
