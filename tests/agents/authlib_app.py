"""An app that uses Authlib: it registers, asks a person, exchanges, calls, renews and revokes."""

import json
import os
import sys

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.integrations.requests_client import OAuth2Session

base = json.loads(sys.stdin.readline())["base"]
resource, redirect = f"{base}/mcp", "http://127.0.0.1:4711/callback"
server = requests.get(f"{base}/.well-known/oauth-authorization-server", timeout=60).json()
registration = {"client_name": "authlib", "redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
client_id = requests.post(server["registration_endpoint"], json=registration, timeout=60).json()["client_id"]
session = OAuth2Session(
    client_id,
    redirect_uri=redirect,
    scope="read write",
    code_challenge_method="S256",
    token_endpoint_auth_method="none",
)
verifier = "a-verifier-of-authlib-that-has-more-than-43-characters"
url, state = session.create_authorization_url(
    server["authorization_endpoint"], code_verifier=verifier, resource=resource
)
print(json.dumps({"authorize": url}), flush=True)
callback = json.loads(sys.stdin.readline())["callback"]
tokens = session.fetch_token(
    server["token_endpoint"], authorization_response=callback, state=state, code_verifier=verifier
)
scope = tokens["scope"]
renewed = session.refresh_token(server["token_endpoint"], refresh_token=tokens["refresh_token"])


def call() -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {renewed['access_token']}"}
    return requests.post(resource, json=message, headers=headers, timeout=60).status_code


before = call()
session.revoke_token(server["revocation_endpoint"], token=renewed["refresh_token"], token_type_hint="refresh_token")
print(json.dumps({"done": {"scope": scope, "before": before, "after": call()}}), flush=True)
