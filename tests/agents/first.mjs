// The first calls of an app that knows an address and nothing else: it asks for no scope and reads first. A refusal
// tells it what to ask the person for.
import { reading, say } from "./lines.mjs";

/** Keeps in memory what the flow makes, as the examples of the SDKs do. */
class Provider {
  redirectUrl = "http://localhost:4711/callback";
  clientMetadata = {
    client_name: "First app",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (discovered) => void (this.discovered = discovered);
  redirectToAuthorization = (url) => void (this.asked = url.href);
}

export async function runFirst({ Client, Transport, UnauthorizedError, returned }) {
  const lines = reading();
  const { endpoint, calls } = await lines.next();
  const provider = new Provider();
  const transport = new Transport(new URL(endpoint), { authProvider: provider });
  const client = new Client({ name: "first-app", version: "1.0.0" });
  await client.connect(transport);
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  const results = [];
  for (const { name, arguments: given } of calls) {
    let [asked, result] = [0, undefined];
    while (!result) {
      try {
        result = await client.callTool({ name, arguments: given });
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || asked > 0) throw error;
        asked += 1;
        say({ authorize: provider.asked });
        const { callback } = await lines.next();
        await transport.finishAuth(returned(new URL(callback).searchParams));
      }
    }
    results.push({ name, asked, isError: result.isError ?? false, text: result.content.at(-1).text });
  }
  await client.close();
  say({ done: { tools, results } });
}
