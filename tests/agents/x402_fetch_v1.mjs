// A buyer by x402-fetch, which speaks version 1: pays for an address and says what it got.
import { wrapFetchWithPayment, decodeXPaymentResponse } from "x402-fetch";
import { privateKeyToAccount } from "viem/accounts";
import { reading, say } from "./lines.mjs";

const lines = reading();
const { key, most } = await lines.next();
const pay = wrapFetchWithPayment(fetch, privateKeyToAccount(key), BigInt(most));
for (;;) {
  const { url } = await lines.next();
  try {
    const answer = await pay(url);
    const receipt = answer.headers.get("X-PAYMENT-RESPONSE");
    const body = await answer.json();
    say({ done: { status: answer.status, body, receipt: receipt && decodeXPaymentResponse(receipt) } });
  } catch (error) {
    say({ done: { error: String(error) } });
  }
}
