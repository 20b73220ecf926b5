// A buyer by @x402/fetch: pays for an address and says what it got. Each further line is another address.
import { wrapFetchWithPaymentFromConfig, decodePaymentResponseHeader } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { key, network, asset, most } = await lines.next();
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network, client: new ExactEvmScheme(privateKeyToAccount(key)) }],
  spendControls: { allowedAssets: [{ network, asset, maxAmountPerPayment: most }] },
});
for (;;) {
  const { url } = await lines.next();
  try {
    const answer = await pay(url);
    const receipt = answer.headers.get("PAYMENT-RESPONSE");
    const body = await answer.json();
    say({ done: { status: answer.status, body, receipt: receipt && decodePaymentResponseHeader(receipt) } });
  } catch (error) {
    say({ done: { error: String(error) } });
  }
}
