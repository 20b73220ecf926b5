// An app that uses oauth4webapi: it reads the metadata of the resource and of its server, then does each step itself.
import * as oauth from "oauth4webapi";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { base } = await lines.next();
const resource = new URL(`${base}/mcp/directory`);
const insecure = { [oauth.allowInsecureRequests]: true };
const redirect_uri = "http://127.0.0.1:4711/callback";

const described = await oauth.resourceDiscoveryRequest(resource, insecure);
const metadata = await oauth.processResourceDiscoveryResponse(resource, described);
const issuer = new URL(metadata.authorization_servers[0]);
const discovered = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: "oauth2" });
const server = await oauth.processDiscoveryResponse(issuer, discovered);
const registered = await oauth.dynamicClientRegistrationRequest(
  server,
  { client_name: "oauth4webapi", redirect_uris: [redirect_uri], token_endpoint_auth_method: "none" },
  insecure,
);
const client = await oauth.processDynamicClientRegistrationResponse(registered);

const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const url = new URL(server.authorization_endpoint);
const parameters = {
  client_id: client.client_id,
  redirect_uri,
  response_type: "code",
  scope: "read",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: resource.href,
  state,
};
for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
say({ authorize: url.href });
const { callback } = await lines.next();
// The issuer in the answer is checked here (RFC 9207).
const answer = oauth.validateAuthResponse(server, client, new URL(callback), state);
const exchange = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), answer, redirect_uri, verifier, {
  ...insecure,
  additionalParameters: { resource: resource.href },
});
const tokens = await oauth.processAuthorizationCodeResponse(server, client, exchange);
const refresh = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), tokens.refresh_token, insecure);
const renewed = await oauth.processRefreshTokenResponse(server, client, refresh);
const call = async () => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const headers = new Headers({ "content-type": "application/json", accept: "application/json, text/event-stream" });
  const sent = oauth.protectedResourceRequest(renewed.access_token, "POST", resource, headers, body, insecure);
  return sent.then((response) => response.status, (error) => error.response?.status ?? error.status ?? String(error));
};
const before = await call();
await oauth.processRevocationResponse(
  await oauth.revocationRequest(server, client, oauth.None(), renewed.access_token, insecure),
);
say({ done: { scope: tokens.scope, before, after: await call() } });
