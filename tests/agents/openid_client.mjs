// An app that uses openid-client: it registers, asks a person, exchanges, calls, renews and revokes.
import * as openid from "openid-client";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { base } = await lines.next();
const resource = `${base}/mcp`;
const redirect_uri = "http://127.0.0.1:4711/callback";
const config = await openid.dynamicClientRegistration(
  new URL(base),
  { client_name: "openid-client", redirect_uris: [redirect_uri], token_endpoint_auth_method: "none" },
  openid.None(),
  { algorithm: "oauth2", execute: [openid.allowInsecureRequests] },
);
const pkceCodeVerifier = openid.randomPKCECodeVerifier();
const expectedState = openid.randomState();
const url = openid.buildAuthorizationUrl(config, {
  redirect_uri,
  scope: "read write",
  code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: "S256",
  resource,
  state: expectedState,
});
say({ authorize: url.href });
const { callback } = await lines.next();
const tokens = await openid.authorizationCodeGrant(config, new URL(callback), { pkceCodeVerifier, expectedState }, { resource });
const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token, { resource });
const call = async (token) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const headers = new Headers({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  });
  return openid.fetchProtectedResource(config, token, new URL(resource), "POST", body, headers).then(
    (answer) => answer.status,
    (error) => error.response?.status ?? error.cause?.status ?? String(error),
  );
};
const before = await call(renewed.access_token);
await openid.tokenRevocation(config, renewed.refresh_token);
say({ done: { scope: tokens.scope, before, after: await call(renewed.access_token) } });
