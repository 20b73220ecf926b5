// A buyer by @x402/fetch with @x402/extensions: checks the offer, pays with an identifier, checks the receipt, signs in to
// read again, and reads the receipt of the sale.
import { x402Client, wrapFetchWithPayment, decodePaymentResponseHeader } from "@x402/fetch";
import { decodePaymentRequiredHeader } from "@x402/core/http";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { validateDiscoveryExtension } from "@x402/extensions/bazaar";
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from "@x402/extensions/offer-receipt";
import {
  appendPaymentIdentifierToExtensions,
  PAYMENT_IDENTIFIER,
  validatePaymentIdentifier,
} from "@x402/extensions/payment-identifier";
import { createSIWxClientExtension, createSIWxPayload, encodeSIWxHeader } from "@x402/extensions/sign-in-with-x";
import Ajv from "ajv/dist/2020.js";
import { privateKeyToAccount } from "viem/accounts";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { key, network, asset, most } = await lines.next();
const account = privateKeyToAccount(key);
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });

/** Throws unless something holds. */
function need(holds, what) {
  if (!holds) throw new Error(what);
}

/** Asks for the terms, and checks every extension in them. */
async function terms(url) {
  const required = decodePaymentRequiredHeader((await fetch(url)).headers.get("PAYMENT-REQUIRED"));
  const bazaar = validateDiscoveryExtension(required.extensions.bazaar);
  need(bazaar.valid, `bazaar: ${bazaar.errors}`);
  need(validatePaymentIdentifier(required.extensions[PAYMENT_IDENTIFIER]).valid, "payment-identifier");
  for (const name of ["bazaar", "offer-receipt", PAYMENT_IDENTIFIER]) {
    const { info, schema } = required.extensions[name];
    need(ajv.validate(schema, info), `${name}: ${ajv.errorsText()}`);
  }
  const [offer] = decodeSignedOffers(extractOffersFromPaymentRequired(required));
  need(findAcceptsObjectFromSignedOffer(offer, required.accepts) === required.accepts[0], "the offer is for other terms");
  // The key is resolved by the host in `kid`.
  const payload = await verifyOfferSignatureJWS(offer.signedOffer);
  need(payload.resourceUrl === required.resource.url, "the offer is for another address");
  return { required, offer };
}

/** Returns the header of a sign-in by a challenge. */
async function signIn(required, url) {
  const { info, supportedChains, schema } = required.extensions["sign-in-with-x"];
  const payload = await createSIWxPayload({ ...info, ...supportedChains[0] }, account, url);
  need(ajv.validate(schema, JSON.parse(JSON.stringify(payload))), `sign-in: ${ajv.errorsText()}`);
  return { "SIGN-IN-WITH-X": encodeSIWxHeader(payload) };
}

for (;;) {
  const { url, id } = await lines.next();
  try {
    const client = x402Client.fromConfig({
      schemes: [{ network, client: new ExactEvmScheme(account) }],
      spendControls: { allowedAssets: [{ network, asset, maxAmountPerPayment: most }] },
    });
    client.registerExtension(createSIWxClientExtension({ signers: [account] }));
    client.registerExtension({
      key: PAYMENT_IDENTIFIER,
      enrichPaymentPayload: async (payload) => {
        const extensions = structuredClone(payload.extensions ?? {});
        return { ...payload, extensions: appendPaymentIdentifierToExtensions(extensions, id) };
      },
    });
    const pay = wrapFetchWithPayment(fetch, client);
    const { required, offer } = await terms(url);
    const paid = await pay(url);
    need(paid.status === 200, `paid: ${paid.status} ${await paid.clone().text()}`);
    const receipt = extractReceiptFromResponse(paid);
    const signed = await verifyReceiptSignatureJWS(receipt);
    need(verifyReceiptMatchesOffer(receipt, offer, [account.address]), "the receipt is for another offer");
    const said = decodePaymentResponseHeader(paid.headers.get("PAYMENT-RESPONSE"));
    need(signed.transaction === said.transaction, "the receipt is for another transaction");
    // The hook of the extension signs in before it pays, and is served.
    const again = await pay(url);
    need(again.status === 200 && !again.headers.get("PAYMENT-RESPONSE"), `signed in: ${again.status}`);
    const fresh = await terms(url);
    const sale = await fetch(said.saleReceipt, { headers: await signIn(fresh.required, url) });
    need(sale.status === 200, `receipt of the sale: ${sale.status}`);
    say({
      done: {
        body: await paid.json(),
        again: await again.json(),
        offer: offer.signedOffer.signature,
        receipt: receipt.signature,
        saleReceipt: await sale.text(),
      },
    });
  } catch (error) {
    say({ done: { error: String(error.stack ?? error) } });
  }
}
