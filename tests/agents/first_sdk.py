"""An app on the official Python SDK, as its README shows one: it asks for no scope and reads first."""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Storage(TokenStorage):
    """Keeps in memory what the flow makes."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


asked = 0


async def redirect(address: str) -> None:
    global asked
    asked += 1
    print(json.dumps({"authorize": address}), flush=True)


async def returned() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    members = parse_qs(urlsplit(json.loads(line)["callback"]).query)
    first = {name: values[0] for name, values in members.items()}
    return AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))


async def main() -> None:
    given = json.loads(sys.stdin.readline())
    metadata = OAuthClientMetadata(
        client_name="First app",
        redirect_uris=["http://localhost:4711/callback"],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(
        server_url=given["endpoint"],
        client_metadata=metadata,
        storage=Storage(),
        redirect_handler=redirect,
        callback_handler=returned,
    )
    results = []
    async with httpx2.AsyncClient(auth=auth, timeout=60, follow_redirects=True) as http:
        async with Client(streamable_http_client(given["endpoint"], http_client=http)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            for call in given["calls"]:
                before = asked
                result = await client.call_tool(call["name"], call["arguments"])
                results.append(
                    {
                        "name": call["name"],
                        "asked": asked - before,
                        "isError": bool(result.is_error),
                        "text": result.content[-1].text,
                    }
                )
    print(json.dumps({"done": {"tools": tools, "results": results}}), flush=True)


asyncio.run(main())
