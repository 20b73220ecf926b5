"""FastMCP's client, as its README shows it: `auth="oauth"` and nothing else. Its browser is the test's."""

import asyncio
import json
import sys
import threading
import urllib.request
import webbrowser

from fastmcp import Client

asked = 0


class Browser(webbrowser.BaseBrowser):
    """Shows an address to the test, and follows where the test was sent."""

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        global asked
        asked += 1
        print(json.dumps({"authorize": url}), flush=True)
        threading.Thread(target=self.follow, daemon=True).start()
        return True

    def follow(self) -> None:
        callback = json.loads(sys.stdin.readline())["callback"]
        urllib.request.urlopen(callback).read()


async def main() -> None:
    given = json.loads(sys.stdin.readline())
    webbrowser.register("test", None, Browser(), preferred=True)
    results = []
    async with Client(given["endpoint"], auth="oauth") as client:
        tools = [tool.name for tool in await client.list_tools()]
        for call in given["calls"]:
            before = asked
            result = await client.call_tool(call["name"], call["arguments"], raise_on_error=False)
            results.append(
                {
                    "name": call["name"],
                    "asked": asked - before,
                    "isError": result.is_error,
                    "text": result.content[-1].text,
                }
            )
    print(json.dumps({"done": {"tools": tools, "results": results}}), flush=True)


asyncio.run(main())
