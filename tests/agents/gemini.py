"""Google's SDK with a session of MCP as its tools, as its README shows it. The model is a server here that asks for one
call after another and reads what the SDK answers."""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx2
from google import genai
from google.genai import types
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

declared: list[str] = []
results: list[dict] = []


def seen(response: dict) -> dict:
    """What a model sees of an answer: its text, or what the SDK says instead."""
    answer = response.get("result") or response.get("error")
    if not isinstance(answer, dict):
        raise ValueError(f"no answer of a tool: {response}")
    return {
        "isError": "error" in response,
        "structured": json.loads(answer["content"][-1]["text"]),
        "content": answer["content"],
    }


def model(calls: list[dict]) -> str:
    """Starts the model, and returns its address."""
    asked = iter(calls)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_arguments) -> None:
            pass

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            declared[:] = [one["name"] for tool in request["tools"] for one in tool["functionDeclarations"]]
            for part in request["contents"][-1]["parts"]:
                if "functionResponse" in part:
                    response = part["functionResponse"]
                    results.append({"name": response["name"], **seen(response["response"])})
            part = {"text": "Done."}
            if call := next(asked, None):
                previous = results[-1]["structured"] if results else {}
                taken = {to: previous.get(name) for to, name in call.get("takes", {}).items()}
                part = {"functionCall": {"name": call["name"], "args": {**call["arguments"], **taken}}}
            answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


async def main() -> None:
    given = json.loads(sys.stdin.readline())
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=model(given["calls"])))
    headers = {"Authorization": f"Bearer {given['key']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with streamable_http_client(given["endpoint"], http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                tools = [tool.name for tool in (await session.list_tools()).tools]
                await client.aio.models.generate_content(
                    model="a-model",
                    contents="Do it.",
                    # A value of the SDK's own class would be copied with the session, which holds a task.
                    config={
                        "tools": [session],
                        "automatic_function_calling": {"maximum_remote_calls": len(given["calls"]) + 1},
                    },
                )
    print(json.dumps({"done": {"tools": tools, "declared": declared, "results": results}}), flush=True)


asyncio.run(main())
