// Payments and proofs by a wallet of this browser (EIP-1193). Only pages with something to sign load it.
// Wallets that announce themselves (EIP-6963), by their ids; one of before is only at `window.ethereum`.
const announced = new Map();
addEventListener("eip6963:announceProvider", ({ detail }) => {
  if (detail?.info?.uuid && detail.provider) announced.set(detail.info.uuid, detail);
  choices();
});
const choice = document.createElement("select");
choice.className = "input auto";
choice.setAttribute("aria-label", "Wallet");
// Two wallets or more are chosen from, beside the first button.
function choices() {
  if (announced.size < 2) return;
  // One that announces itself late does not change what was chosen.
  const chosen = choice.value;
  choice.replaceChildren(...[...announced].map(([id, { info }]) => new Option(info.name, id, false, id === chosen)));
  if (!choice.isConnected) document.querySelector("[data-pay], [data-sign]")?.before(choice);
}
const wallet = () => (announced.get(choice.value) ?? announced.values().next().value)?.provider ?? window.ethereum;
const status = (button) => document.getElementById(button.dataset.said);
const hex = (bytes) => "0x" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const wait = (seconds) => new Promise((done) => { setTimeout(done, seconds * 1000); });
const reason = (error) => error?.code === 4001 ? "You said no in the wallet. Nothing was sent." : `The wallet says: ${error?.message ?? error}`;

// The wallet is asked for once, so one that is chosen meanwhile gets the next payment.
async function connected(by) {
  if (!by) throw new Error("this browser has no wallet; use another one, or hand the call to an agent");
  const [from] = await by.request({ method: "eth_requestAccounts" });
  return from;
}

async function switched(by, chain) {
  const chainId = "0x" + chain.toString(16);
  // A wallet refuses to sign for another chain than the one it shows. One that knows no chains signs at once.
  await by.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] }).catch((error) => {
    if (error?.code === 4001) throw error;
  });
}

async function signed(terms) {
  const accepted = terms.accepts[0];
  const by = wallet();
  const from = await connected(by);
  const chain = Number(accepted.network.split(":")[1]);
  await switched(by, chain);
  const now = Math.floor(Date.now() / 1000);
  const authorization = {
    from,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - 60),
    validBefore: String(now + accepted.maxTimeoutSeconds),
    nonce: hex(crypto.getRandomValues(new Uint8Array(32))),
  };
  const field = (type, name) => ({ name, type });
  const typed = {
    types: {
      EIP712Domain: [field("string", "name"), field("string", "version"), field("uint256", "chainId"), field("address", "verifyingContract")],
      TransferWithAuthorization: [
        field("address", "from"), field("address", "to"), field("uint256", "value"),
        field("uint256", "validAfter"), field("uint256", "validBefore"), field("bytes32", "nonce"),
      ],
    },
    primaryType: "TransferWithAuthorization",
    domain: { name: accepted.extra.name, version: accepted.extra.version, chainId: chain, verifyingContract: accepted.asset },
    message: authorization,
  };
  const signature = await by.request({ method: "eth_signTypedData_v4", params: [from, JSON.stringify(typed)] });
  return btoa(JSON.stringify({ x402Version: 2, resource: terms.resource, accepted, payload: { signature, authorization } }));
}

// The same payment is sent until its outcome can be read, and never a second one: a signature is charged once.
async function settled(address, payment, say) {
  for (;;) {
    const answer = await fetch(address, { headers: { "PAYMENT-SIGNATURE": payment, Accept: "application/json" } })
      .catch(() => null);
    // A failure of the service or of what stands before it, and an answer that was cut, say nothing of the payment.
    const body = answer && answer.status < 500 && answer.status !== 429 ? await answer.json().catch(() => null) : null;
    if (body) return { answer, body };
    say("No answer yet. Nothing is charged twice; this page keeps asking.");
    await wait(Number(answer?.headers.get("Retry-After")) || 3);
  }
}

function paid(answer) {
  try {
    const receipt = JSON.parse(atob(answer.headers.get("PAYMENT-RESPONSE")));
    return receipt.amount === "0" ? "It is yours already; nothing was charged. " : `Paid, by the transaction ${receipt.transaction}. `;
  } catch {
    return "Paid. ";
  }
}

// Payments that were signed, by their buttons, until their outcome is known.
const open = new WeakMap();

// Saves what was bought as a file. A pack of credits is in the account and needs none.
function offer(button, body) {
  const saved = document.createElement("a");
  if (button.dataset.times) {
    saved.href = "/console/money#spending";
    saved.textContent = "See your credit";
  } else {
    saved.href = URL.createObjectURL(new Blob([JSON.stringify(body, null, 2)], { type: "application/json" }));
    saved.download = "bought.json";
    saved.textContent = "Save what you bought";
  }
  status(button).append(saved);
}

async function pay(button) {
  const say = (text) => { status(button).textContent = text; };
  // Several packs are several payments, each with a signature of its own.
  const times = Number(button.dataset.times ?? 1);
  const count = () => Number(button.dataset.paid ?? 0);
  const part = () => times > 1 ? `${count()} of ${times} paid. ` : "";
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  try {
    while (count() < times) {
      if (!open.has(button)) {
        say(`${part()}Waiting for your wallet.`);
        open.set(button, await signed(JSON.parse(button.dataset.pay)));
      }
      say(`${part()}Signed. Waiting for the payment.`);
      const { answer, body } = await settled(button.dataset.address, open.get(button), say);
      open.delete(button);
      if (!answer.ok) {
        say(part() + (body.reason ? `${body.message} (${body.reason})` : body.message));
        break;
      }
      button.dataset.paid = count() + 1;
      say(part() + paid(answer));
      if (count() === times) offer(button, body);
    }
  } catch (error) {
    say(part() + reason(error));
  }
  button.removeAttribute("aria-busy");
  button.disabled = count() >= times;
}

async function prove(button) {
  const say = (text) => { status(button).textContent = text; };
  try {
    const by = wallet();
    const from = await connected(by);
    const message = document.getElementById(button.dataset.message).textContent;
    const params = [hex(new TextEncoder().encode(message)), from];
    document.getElementById(button.dataset.sign).value = await by.request({ method: "personal_sign", params });
    say("Signed. Send the form.");
  } catch (error) {
    say(reason(error));
  }
}

for (const button of document.querySelectorAll("[data-pay]")) {
  button.hidden = false;
  button.addEventListener("click", () => pay(button));
}
for (const button of document.querySelectorAll("[data-sign]")) {
  button.hidden = false;
  button.addEventListener("click", () => prove(button));
}
// <… data-watch="id">: says once that the text of this element is another on the server, such as a balance after a payment
// from a phone. A page that nobody looks at asks nothing, and after half an hour none does.
for (const watch of document.querySelectorAll("[data-watch]")) {
  const shown = document.getElementById(watch.dataset.watch);
  watch.textContent = "Waiting for a payment. This page notices it by itself.";
  let rounds = 360;
  const look = async () => {
    rounds -= 1;
    if (document.hidden) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.getElementById(shown.id)?.textContent;
    if (!now || now === shown.textContent) return;
    shown.textContent = now;
    watch.textContent = `A payment arrived. You have ${now}.`;
    rounds = 0;
  };
  const timer = setInterval(() => { if (rounds > 0) look(); else clearInterval(timer); }, 5000);
}
dispatchEvent(new Event("eip6963:requestProvider"));
