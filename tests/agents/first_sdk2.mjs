// An app on the official TypeScript SDK, version 2, as its README shows one.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { runFirst } from "./first.mjs";

await runFirst({
  Client,
  Transport: StreamableHTTPClientTransport,
  UnauthorizedError,
  returned: (callback) => callback,
});
