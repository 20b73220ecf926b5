"""A buyer by the package x402 of PyPI with its extensions: pays with an identifier, and signs in to read again."""

import asyncio
import base64
import json
import sys

import requests
from eth_account import Account
from x402 import x402ClientSync
from x402.extensions.payment_identifier import append_payment_identifier_to_extensions, validate_payment_identifier
from x402.extensions.sign_in_with_x import create_siwx_payload, encode_siwx_header
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner


def say(value):
    print(json.dumps(value), flush=True)


def header(answer, name):
    return json.loads(base64.b64decode(answer.headers[name]))


class Identified:
    """Gives each payment the identifier."""

    key = "payment-identifier"

    def __init__(self, id):
        self.id = id

    def enrich_payment_payload(self, payload, required):
        extensions = json.loads(json.dumps(payload.extensions or {}))
        payload.extensions = append_payment_identifier_to_extensions(extensions, self.id)
        return payload


given = json.loads(sys.stdin.readline())
for line in sys.stdin:
    try:
        order = json.loads(line)
        client = x402ClientSync()
        register_exact_evm_client(client, EthAccountSigner(Account.from_key(given["key"])))
        allowed = {"network": given["network"], "asset": given["asset"], "max_amount_per_payment": given["most"]}
        client.set_spend_controls({"allowed_assets": [allowed]})
        client.register_extension(Identified(order["id"]))
        paid = x402_requests(client).get(order["url"])
        required = header(requests.get(order["url"]), "PAYMENT-REQUIRED")
        declared = validate_payment_identifier(required["extensions"]["payment-identifier"])
        sign_in = required["extensions"]["sign-in-with-x"]
        info = {**sign_in["info"], **sign_in["supportedChains"][0]}
        payload = asyncio.run(create_siwx_payload(info, Account.from_key(given["key"]), order["url"]))
        again = requests.get(order["url"], headers={"SIGN-IN-WITH-X": encode_siwx_header(payload)})
        receipt = header(paid, "PAYMENT-RESPONSE")["extensions"]["offer-receipt"]["info"]["receipt"]
        say({"done": {"paid": paid.status_code, "declared": declared.valid, "again": again.status_code, "body": paid.json(),
                      "read": again.json(), "receipt": receipt["signature"]}})
    except Exception as error:
        say({"done": {"error": repr(error)}})
