"""A buyer by the package x402 of PyPI: pays for an address and says what it got."""

import base64
import json
import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner


def say(value):
    print(json.dumps(value), flush=True)


given = json.loads(sys.stdin.readline())
client = x402ClientSync()
register_exact_evm_client(client, EthAccountSigner(Account.from_key(given["key"])))
allowed = {"network": given["network"], "asset": given["asset"], "max_amount_per_payment": given["most"]}
client.set_spend_controls({"allowed_assets": [allowed]})
session = x402_requests(client)
for line in sys.stdin:
    try:
        answer = session.get(json.loads(line)["url"])
        receipt = answer.headers.get("PAYMENT-RESPONSE")
        receipt = receipt and json.loads(base64.b64decode(receipt))
        say({"done": {"status": answer.status_code, "body": answer.json(), "receipt": receipt}})
    except Exception as error:
        say({"done": {"error": repr(error)}})
