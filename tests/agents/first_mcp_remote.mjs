// mcp-remote between a client that speaks to a local process and the service, as its README shows it: the address and
// nothing else. It opens a browser and waits for the answer by itself.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { endpoint, calls } = await lines.next();
const manifest = createRequire(import.meta.url).resolve("mcp-remote/package.json");
// An empty home, and no program that could open a window.
const home = mkdtempSync(join(tmpdir(), "mcp-remote-"));
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [join(dirname(manifest), "dist/proxy.js"), endpoint],
  env: { HOME: home, MCP_REMOTE_CONFIG_DIR: home, PATH: home },
  stderr: "pipe",
});
let asked = 0;
createInterface({ input: transport.stderr }).on("line", async (line) => {
  process.stderr.write(`${line}\n`);
  const address = line.match(/https?:\/\/\S+\/oauth\/authorize\?\S+/);
  if (!address) return;
  asked += 1;
  say({ authorize: address[0] });
  const { callback } = await lines.next();
  // What the browser does with the answer. A person takes longer than mcp-remote takes to listen; a program does not.
  const until = Date.now() + 30_000;
  while (!(await fetch(callback).catch(() => undefined)) && Date.now() < until) await sleep(50);
});
const client = new Client({ name: "first-app", version: "1.0.0" });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const results = [];
for (const { name, arguments: given } of calls) {
  const before = asked;
  const result = await client.callTool({ name, arguments: given });
  results.push({ name, asked: asked - before, isError: result.isError ?? false, text: result.content.at(-1).text });
}
await client.close();
rmSync(home, { recursive: true });
say({ done: { tools, results } });
