// An app on the official TypeScript SDK, version 1, as its README shows one.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { runFirst } from "./first.mjs";

await runFirst({
  Client,
  Transport: StreamableHTTPClientTransport,
  UnauthorizedError,
  // This version takes the code alone.
  returned: (callback) => callback.get("code"),
});
