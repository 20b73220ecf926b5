// The official TypeScript client of MCP. It starts without a token: the refusal of a tool tells it where to get one.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { base, calls } = await lines.next();
// All that the client knows beforehand is `/llms.txt`, which links to the endpoint.
const index = await (await fetch(`${base}/llms.txt`)).text();
const endpoint = new URL(index.match(/\]\((\S+)\): every tool/)[1]);

/** Keeps in memory what the flow makes. */
class Wallet {
  redirectUrl = "http://127.0.0.1:4711/callback";
  clientMetadata = {
    client_name: "typescript-sdk",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: "read write",
  };
  state = () => "a-state";
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  redirectToAuthorization = (url) => say({ authorize: url.href });
}

const wallet = new Wallet();
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(endpoint, { authProvider: wallet });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  return { client, transport };
};

const stranger = await connect();
const tools = (await stranger.client.listTools()).tools.map((tool) => tool.name);
let wasAsked = false;
try {
  await stranger.client.callTool({ name: "create_dataset", arguments: {} });
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  wasAsked = true;
}
const { callback } = await lines.next();
await stranger.transport.finishAuth(new URL(callback).searchParams.get("code"));

const { client } = await connect();
// The list tells the client which answers it has to hold against a schema.
await client.listTools();
const results = [];
let previous = {};
for (const { name, arguments: given, takes } of calls) {
  // An argument can be a member of the answer before.
  const taken = Object.fromEntries(Object.entries(takes ?? {}).map(([to, from]) => [to, previous[from]]));
  const result = await client.callTool({ name, arguments: { ...given, ...taken } });
  previous = result.structuredContent ?? {};
  results.push({ name, isError: result.isError ?? false, structured: previous, content: result.content });
}
await client.close();
say({ done: { tools, wasAsked, scope: wallet.kept.scope, results } });
