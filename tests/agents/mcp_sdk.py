"""The official Python client of MCP, with the key of an agent. It finds the endpoint in `/llms.txt`."""

import asyncio
import json
import re
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    given = json.loads(sys.stdin.readline())
    async with httpx2.AsyncClient(timeout=60) as http:
        index = (await http.get(f"{given['base']}/llms.txt")).text
    endpoint = re.search(r"\]\((\S+)\): every tool", index).group(1)
    headers = {"Authorization": f"Bearer {given['key']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(endpoint, http_client=http)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            results, previous = [], {}
            for call in given["calls"]:
                taken = {to: previous.get(name) for to, name in call.get("takes", {}).items()}
                result = await client.call_tool(call["name"], {**call["arguments"], **taken})
                previous = result.structured_content or {}
                results.append(
                    {
                        "name": call["name"],
                        "isError": bool(result.is_error),
                        "structured": previous,
                        "content": [block.model_dump(mode="json") for block in result.content],
                    }
                )
    print(json.dumps({"done": {"tools": tools, "results": results}}), flush=True)


asyncio.run(main())
