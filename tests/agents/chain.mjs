// A token on a node of an EVM chain, and a facilitator for it by HTTP.
import { createServer } from "node:http";
import { createPublicClient, createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { reading, say } from "./lines.mjs";

const ABI = [
  { type: "function", name: "mint", inputs: [{ name: "to", type: "address" }, { name: "value", type: "uint256" }], outputs: [], stateMutability: "nonpayable" },
  { type: "function", name: "balanceOf", inputs: [{ name: "of", type: "address" }], outputs: [{ type: "uint256" }], stateMutability: "view" },
];

const lines = reading();
const { rpc, key, bytecode, mint } = await lines.next();
const chain = defineChain({
  id: 84532, name: "test", nativeCurrency: { name: "E", symbol: "E", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
});
const account = privateKeyToAccount(key);
const wallet = createWalletClient({ account, chain, transport: http(rpc) }).extend(publicActions);
const view = createPublicClient({ chain, transport: http(rpc) });
const mined = async (hash) => wallet.waitForTransactionReceipt({ hash, pollingInterval: 50 });
const token = (await mined(await wallet.deployContract({ abi: ABI, bytecode }))).contractAddress;
for (const [to, value] of Object.entries(mint)) {
  await mined(await wallet.writeContract({ address: token, abi: ABI, functionName: "mint", args: [to, BigInt(value)] }));
}

const signer = toFacilitatorEvmSigner({
  address: account.address,
  readContract: (call) => wallet.readContract(call),
  verifyTypedData: (data) => wallet.verifyTypedData(data),
  writeContract: (call) => wallet.writeContract(call),
  sendTransaction: (transaction) => wallet.sendTransaction(transaction),
  waitForTransactionReceipt: ({ hash }) => mined(hash),
  getCode: (of) => wallet.getCode(of),
});
const facilitator = new x402Facilitator()
  .register("eip155:84532", new ExactEvmScheme(signer))
  .registerV1("base-sepolia", new ExactEvmSchemeV1(signer));
// What the test asks for next: "drop" settles and answers nothing.
let manner = "right";
const server = createServer(async (request, response) => {
  const answer = (value) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(value));
  if (request.url === "/supported") return answer(facilitator.getSupported());
  let text = "";
  for await (const piece of request) text += piece;
  const { paymentPayload, paymentRequirements } = JSON.parse(text);
  try {
    if (request.url === "/verify") return answer(await facilitator.verify(paymentPayload, paymentRequirements));
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    if (manner === "drop") return request.socket.destroy();
    return answer(settled);
  } catch (error) {
    response.statusCode = 500;
    return answer({ error: String(error) });
  }
});
server.listen(0, "127.0.0.1", () => say({ ready: { token, facilitator: `http://127.0.0.1:${server.address().port}` } }));
for (;;) {
  const line = await lines.next();
  if (line.manner) {
    manner = line.manner;
    say({ manner });
  } else {
    const balance = await view.readContract({ address: token, abi: ABI, functionName: "balanceOf", args: [line.balance] });
    say({ balance: Number(balance) });
  }
}
