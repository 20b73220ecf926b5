// An app of oauth4webapi that is known by the URL of its metadata document and signs assertions (private_key_jwt).
import * as oauth from "oauth4webapi";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { base, client: client_id } = await lines.next();
const insecure = { [oauth.allowInsecureRequests]: true };
const redirect_uri = "http://127.0.0.1:4711/callback";
const resource = new URL(`${base}/mcp`);

const pair = async (kid) => {
  const { privateKey, publicKey } = await oauth.generateKeyPair("ES256", { extractable: true });
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
  return { key: privateKey, kid, jwk: { kty, crv, x, y, kid, alg: "ES256", use: "sig" } };
};
// The thief has a key of its own with the id of the app's key.
const [own, thief] = [await pair("tide-1"), await pair("tide-1")];
say({ keys: { keys: [own.jwk] } });
await lines.next();

const issuer = new URL(base);
const discovered = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: "oauth2" });
const server = await oauth.processDiscoveryResponse(issuer, discovered);
if (!server.client_id_metadata_document_supported) throw new Error("the server takes no documents");
const client = { client_id };
const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const url = new URL(server.authorization_endpoint);
const parameters = {
  client_id,
  redirect_uri,
  response_type: "code",
  scope: "read write",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: resource.href,
  state,
};
for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
say({ authorize: url.href });
const { callback } = await lines.next();
const answer = oauth.validateAuthResponse(server, client, new URL(callback), state);

/** Exchanges the code with this proof. */
const exchange = (proof) =>
  oauth.authorizationCodeGrantRequest(server, client, proof, answer, redirect_uri, verifier, insecure);
/** Returns the error of a refused request. */
const refused = async (response) => (await response.json()).error;

const unproved = await refused(await exchange(oauth.None()));
const stolen = await refused(await exchange(oauth.PrivateKeyJwt({ key: thief.key, kid: thief.kid })));
// Every assertion is sent as a form, so one that was seen can be sent once more.
let assertion;
const signed = oauth.PrivateKeyJwt({ key: own.key, kid: own.kid });
const recorded = async (as, of, body, headers) => {
  await signed(as, of, body, headers);
  assertion = body.get("client_assertion");
};
const tokens = await oauth.processAuthorizationCodeResponse(server, client, await exchange(recorded));
const replay = (as, of, body) => {
  body.set("client_id", client_id);
  body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
  body.set("client_assertion", assertion);
};
const renew = (proof) => oauth.refreshTokenGrantRequest(server, client, proof, tokens.refresh_token, insecure);
const replayed = await refused(await renew(replay));
const renewed = await oauth.processRefreshTokenResponse(server, client, await renew(signed));
const call = async () => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const headers = new Headers({ "content-type": "application/json", accept: "application/json, text/event-stream" });
  const sent = oauth.protectedResourceRequest(renewed.access_token, "POST", resource, headers, body, insecure);
  return sent.then((response) => response.status, (error) => error.response?.status ?? error.status ?? String(error));
};
const before = await call();
await oauth.processRevocationResponse(
  await oauth.revocationRequest(server, client, signed, renewed.access_token, insecure),
);
say({ done: { unproved, stolen, replayed, scope: tokens.scope, before, after: await call() } });
