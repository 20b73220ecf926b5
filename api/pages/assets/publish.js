// A file becomes a dataset: looked at, checked and sent. Only the page of a file loads it, which works without it for
// small files. It calls /console/act/{operation} and nothing else, and fills markup that the server made.
const $ = (id) => document.getElementById(id);
const [choose, form] = [$("choose"), $("publish")];
let token = form.elements.form_token.value;
const { agent, to, looked, upload } = form.dataset;
const [LOOKED, LARGEST, PART, TRIES, AT_ONCE] = [Number(looked), Number(upload), 8 << 20, 5, 4];
const KEPT = "sluice-upload-";
const READING = "Reading …";
const wait = (seconds) => new Promise((done) => { setTimeout(done, seconds * 1000); });
const grouped = (n) => Number(n).toLocaleString("en");
const size = (n) => n < 1e6 ? `${grouped(Math.ceil(n / 1e3))} KB` : `${grouped(Math.round(n / 1e5) / 10)} MB`;
const one = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text ?? "";
  return element;
};

// The file, what is known of it, and what the person said since.
let file = null;
let sent = { base64: "", bytes: 0, isWhole: true };
let found = null;
// What was said of the whole file, as flags of the command line; and of columns, by their names in the file.
let flags = [];
let edits = {};
let turn = 0;
let created = null;
// What is shown may be published; and where trouble is said.
let isReady = false;
let place = "trouble";
const suggested = {};

/* Who signed in again has a session of another token, which any page of that session shows. */
async function renewed() {
  const page = await fetch("/console/publish").then((answer) => answer.text()).catch(() => "");
  const given = page.match(/name="form_token" value="([\w-]+)"/)?.[1];
  if (!given || given === token) return false;
  token = given;
  for (const field of document.querySelectorAll("[name=form_token]")) field.value = token;
  return true;
}

async function act(operation, body, as = agent) {
  for (let tried = 1; ; tried += 1) {
    const answer = await fetch(`/console/act/${operation}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Agent": as, "X-Form-Token": token },
      body: JSON.stringify(body),
    }).catch(() => null);
    const isLines = answer?.headers.get("Content-Type")?.startsWith("application/x-ndjson");
    const value = await (answer?.ok && isLines ? answer.blob() : answer?.json())?.catch(() => null);
    if (answer?.ok && value) return value;
    if (value?.error === "foreign_form" && await renewed()) continue;
    const again = !answer || answer.status === 503 || value?.error === "busy" || value?.error === "rate_limited";
    if (again && tried < TRIES) {
      await wait(Number(answer?.headers.get("Retry-After")) || tried);
      continue;
    }
    throw Object.assign(new Error(value?.message ?? "the service does not answer"), { status: answer?.status ?? 0, body: value ?? {} });
  }
}

/* What went wrong stands where the step is, and is read out. */
function calm() {
  for (const id of ["trouble", "stopped"]) $(id).replaceChildren();
}

function trouble(title, text, ...more) {
  const note = one("div", "", { class: "note bad", role: "alert" });
  const inside = one("div");
  inside.append(one("p", title, { class: "b", dir: "auto" }));
  if (text) inside.append(one("p", text, { dir: "auto" }));
  inside.append(...more);
  note.append(inside);
  calm();
  $(place).replaceChildren(note);
  const told = $("status").querySelector("[data-reading]");
  if (told?.textContent === READING) told.textContent = "";
  $("sending").hidden = true;
  say("");
  busy(false);
  note.scrollIntoView({ block: "nearest" });
}

function failed(error) {
  if (error.status === 401) {
    const link = one("a", "Sign in", { class: "btn sm", href: "/signin?next=/console/publish", target: "_blank" });
    return trouble("You were signed out", "Sign in again in another tab, then go on here.", link);
  }
  if (error.body?.error === "not_connected") {
    const link = one("a", "Connect", { class: "btn sm", href: to ? `/console/publish?to=${to}` : "/console/publish" });
    return trouble("The console is not connected to this agent any more", "Open the page again and agree once more.", link);
  }
  const details = error.body?.details ?? [];
  const list = one("ul", "", { class: "sm" });
  list.append(...details.map((detail) => one("li", `${detail.path || "the request"} ${detail.problem}`, { dir: "auto" })));
  if (error.body?.uploads) list.append(...error.body.uploads.map((open) => one("li", `${open.project}, ${size(open.bytes)}, until ${open.expiresAt}`)));
  return trouble(sentence(error.message), "", list);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const say = (text) => { $("sent").textContent = text; };
function busy(is) {
  $("go").disabled = is || !isReady;
  $("again").disabled = is;
  form.setAttribute("aria-busy", String(is));
}

/* 1. The file. */
const base64 = (blob) => new Promise((done, refuse) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => refuse(new Error("the file cannot be read; it may have changed"));
  reader.readAsDataURL(blob);
});

async function begins(blob) {
  const head = new Uint8Array(await blob.slice(0, 8).arrayBuffer());
  const text = String.fromCharCode(...head);
  if (text.startsWith("PAR1") || text.startsWith("ARROW1") || text.startsWith("PK\x03\x04")) return "table";
  if (text.startsWith("\xff\xff\xff\xff")) return "table";
  return text.startsWith("\x1f\x8b") ? "gzip" : text.startsWith("\x28\xb5\x2f\xfd") ? "zstd" : "text";
}

// As much of a large text as fits when it is compressed, up to the end of a line.
async function squeezed(source) {
  const packer = new CompressionStream("gzip");
  const [writer, pieces] = [packer.writable.getWriter(), []];
  let [packed, bytes] = [0, 0];
  const packing = (async () => {
    const reader = packer.readable.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      pieces.push(next.value);
      packed += next.value.length;
    }
  })();
  const reader = source.getReader();
  let next = await reader.read();
  while (!next.done) {
    // What the packer still holds is at most a few pieces, and random bytes grow a little.
    const isLast = packed + (4 << 20) > LOOKED;
    const piece = isLast ? next.value.subarray(0, next.value.lastIndexOf(10) + 1) : next.value;
    await writer.write(piece);
    bytes += piece.length;
    if (isLast) {
      await reader.cancel();
      break;
    }
    next = await reader.read();
  }
  await writer.close();
  await packing;
  return { base64: await base64(new Blob(pieces)), bytes, isWhole: next.done };
}

async function look(chosen) {
  [file, found, flags, edits, created, isReady, place] = [chosen, null, [], {}, null, false, "trouble"];
  if (!to) form.elements.slug.readOnly = false;
  calm();
  form.hidden = true;
  const told = one("span", "", { class: "file" });
  const name = one("b");
  name.append(one("bdi", file.name));
  told.append(name, one("span", size(file.size), { class: "mute" }), one("span", READING, { class: "soft", "data-reading": "" }));
  $("status").replaceChildren(told);
  if (file.size === 0) return trouble(`${file.name} is empty`);
  if (file.size > LARGEST) {
    return trouble(`${file.name} has ${size(file.size)}; one file may have ${size(LARGEST)}`, "Compress it with gzip, or send it in parts: the second is added to the first.");
  }
  try {
    const kind = await begins(file);
    if (file.size <= LOOKED) sent = { base64: await base64(file), bytes: file.size, isWhole: true };
    else if (kind === "text") sent = await squeezed(file.stream());
    else if (kind === "gzip") sent = await squeezed(file.stream().pipeThrough(new DecompressionStream("gzip")));
    else {
      return trouble(`${file.name} has ${size(file.size)}`, "A large table of this kind is read on your own machine:", one("p", to ? `sluice push FILE --project ${to}` : "sluice push FILE --create", { class: "mono" }));
    }
    file.kind = kind;
    await infer();
  } catch (error) { failed(error); }
}

/* 2. Look, and 3. check: the first call finds the contract, the second judges by it. Both again after each change. */
async function infer() {
  const mine = ++turn;
  [isReady, place] = [false, "trouble"];
  busy(true);
  const said = [...flags, ...columnFlags()];
  const body = { base64: sent.base64, ...said.length > 0 && { flags: said } };
  try {
    let answer = await act("infer_file", to ? { ...body, schemaDef: JSON.parse(form.dataset.schema), onRefused: policy() } : body);
    // A later change has asked again.
    if (mine !== turn) return;
    if (!to && answer.schemaDef && answer.questions.length === 0) {
      // The second call judges by a contract, and has nothing to note about how that was found.
      const { notes } = answer;
      answer = { ...answer, ...await act("infer_file", { ...body, schemaDef: documented(answer.schemaDef), onRefused: policy() }), notes };
      if (mine !== turn) return;
    }
    found = answer;
    calm();
    show();
    if (!to && !created) suggest();
  } catch (error) {
    if (mine === turn) failed(error);
  }
}

const policy = () => form.elements.refused.value;

/* The contract with what the person says of its fields. It judges no record. */
function documented(schemaDef) {
  const fields = schemaDef.fields.map((field) => {
    const column = Object.values(edits).find((edit) => edit.meaning && edit.field === field.name);
    return column ? { ...field, description: column.meaning } : field;
  });
  return { ...schemaDef, fields };
}

// A name that the file has twice is no name of a column; that of its field is.
function keyOf(column) {
  const isTwice = found.columns.filter((other) => other.name === column.name).length > 1;
  return isTwice ? column.field ?? column.name : column.name;
}

function columnFlags() {
  return Object.entries(edits).flatMap(([key, edit]) => {
    if (edit.use === false) return [{ flag: "--ignore", value: key }];
    const said = [];
    if (edit.name) said.push({ flag: "--rename", value: `${key}=${edit.name}` });
    if (edit.kind) {
      const scale = edit.kind === "decimal" ? `(${Number(edit.scale) || 0})` : "";
      const parse = ["date", "timestamp"].includes(edit.kind) && edit.parse ? `:${edit.parse}` : "";
      said.push({ flag: "--types", value: `${key}=${edit.kind}${scale}${parse}` });
    }
    if (edit.required) said.push({ flag: "--required", value: key });
    return said;
  });
}

const DIALECT = { delimiter: "--delimiter", header: "--no-header", decimal: "--decimal-comma", encoding: "--encoding", zone: "--zone", sheet: "--sheet", nulls: "--null" };
const FORMATS = { csv: "CSV", "json-lines": "JSON Lines", json: "a JSON document", parquet: "Parquet", "arrow-file": "Arrow", "arrow-stream": "Arrow", xlsx: "Excel" };
const DELIMITERS = { ";": "semicolons", "\t": "tabs", "|": "bars" };
const isTable = () => ["parquet", "arrow-file", "arrow-stream", "xlsx"].includes(found.format);
const fields = () => found.schemaDef?.fields ?? [];

function words() {
  const { reading } = found;
  const parts = [FORMATS[found.format] ?? found.format];
  if (found.format === "csv") parts.push(DELIMITERS[reading.delimiter] ?? "commas");
  if (reading.decimal === ",") parts.push("decimal comma");
  if (reading.encoding) parts.push(reading.encoding);
  return parts.join(", ");
}

function show() {
  $("status").querySelector("[data-reading]").textContent = `${words()} · ${grouped(found.records)} records`;
  // Who types or moves by keyboard stays where they are.
  const { id, value } = document.activeElement ?? {};
  $("columns").replaceChildren(...found.columns.map(columnRow));
  if (/^c\d+-/.test(id)) {
    $(id)?.focus();
    if ($(id)?.tagName === "INPUT" && $(id).type !== "checkbox") $(id).value = value;
  }
  $("columns-told").textContent = `${grouped(fields().length)} of ${grouped(found.columns.length)} used.`;
  // A note on a column stands beside it.
  const names = new Set(found.columns.map(({ name }) => name));
  $("notes").replaceChildren(...found.notes.filter(({ column }) => !names.has(column)).slice(0, 50).map((note) => remark("li", note)));
  $("questions").replaceChildren(...found.questions.map((question) => {
    const note = one("div", "", { class: "note hold mb" });
    note.append(remark("div", question, names.has(question.column) ? question.column : ""));
    return note;
  }));
  const { passed = 0, refused = 0, duplicates = 0 } = found;
  for (const [name, value] of Object.entries({ records: found.records, passed, refused, duplicates })) {
    $("counts").querySelector(`[data-n=${name}]`).textContent = grouped(value);
  }
  const verdicts = found.verdicts ?? [];
  $("refused-rows").hidden = verdicts.length === 0;
  $("verdicts").replaceChildren(...verdicts.map(verdictRow));
  $("policy").hidden = refused === 0;
  partly();
  const heads = fields().map((field) => field.name);
  $("sample-heads").replaceChildren(...heads.map((head) => one("th", head, { scope: "col", dir: "auto" })));
  $("sample").replaceChildren(...found.sample.map((record) => {
    const row = one("tr");
    row.append(...heads.map((head) => cell(record[head])));
    return row;
  }));
  isReady = found.questions.length === 0 && passed > 0;
  stand("s1", "done", "✓");
  stand("s3", isReady ? "done" : "hold", isReady ? "✓" : "3");
  drop.classList.add("small");
  drop.querySelector("b").textContent = "Another file";
  drop.querySelector(".btn")?.remove();
  form.hidden = false;
  busy(false);
  say(isReady ? "" : found.questions.length > 0 ? "Answer the questions above first." : "No record passes the checks.");
}

function stand(id, state, sign) {
  $(id).className = `step ${state}`;
  $(id).firstElementChild.textContent = sign;
}

function cell(value) {
  if (value === undefined || value === null) return one("td", "empty", { class: "null" });
  return one("td", typeof value === "string" ? value : JSON.stringify(value), { dir: "auto" });
}

function partly() {
  if (found.complete && sent.isWhole) return $("partly").replaceChildren();
  const note = one("div", "", { class: "note hold" });
  const text = one("div");
  text.append(
    one("p", `Read ${size(sent.bytes)}${file.kind === "gzip" ? "" : ` of ${size(file.size)}`}; a later row may not fit`, { class: "b" }),
    one("p", "The command line reads all of it. Or keep doubtful columns as text, which takes everything."),
  );
  const button = one("button", "Make doubtful columns text", { class: "btn sm", type: "button" });
  button.addEventListener("click", () => {
    for (const column of found.columns) if (column.field && column.type !== "string") edits[keyOf(column)] = { ...edits[keyOf(column)], field: column.field, kind: "string" };
    infer();
  });
  note.append(text, button);
  return $("partly").replaceChildren(note);
}

/* A note or a question, with a button for each answer. What stands in backticks is of the file. */
function remark(tag, { message, line, remedies = [] }, of = "") {
  const element = one(tag, "", { dir: "auto" });
  const text = one(tag === "li" ? "span" : "p");
  if (of) text.append(one("b", of, { dir: "auto" }), ": ");
  const where = line && !message.includes(`line ${line}`) ? ` (line ${grouped(line)})` : "";
  text.append(...coded(sentence(message) + where));
  element.append(text);
  const buttons = one(tag === "li" ? "span" : "div", "", { class: "row mt-s" });
  buttons.append(...remedies.map(remedyButton).filter(Boolean));
  if (buttons.childElementCount > 0) element.append(buttons);
  return element;
}

const coded = (text) => text.split("`").map((piece, index) => index % 2 === 1 ? one("code", piece) : piece);

function remedyButton(remedy) {
  const label = labelOf(remedy);
  if (!label) return null;
  const button = one("button", label, { class: "btn sm", type: "button", dir: "auto" });
  button.addEventListener("click", () => settle(remedy));
  return button;
}

function verdictRow({ line, column, path, value, gate, message, remedy }) {
  const isDropped = gate === "dedup";
  const row = one("tr", "", { class: isDropped ? "dup" : "ref" });
  row.append(
    one("td", line ? grouped(line) : "", { class: "ln" }),
    one("td", column ?? path, { dir: "auto" }),
    one("td", value, { dir: "auto" }),
    one("td", isDropped ? "dropped" : "refused"),
    one("td", "", { dir: "auto" }),
  );
  row.lastElementChild.append(...coded(message));
  const last = one("td");
  // What a person wrote about persons is not mended cell by cell.
  const mended = remedy ?? (gate === "personal-data" && column ? { flag: "--ignore", value: column } : null);
  const button = mended && remedyButton(mended);
  if (button) last.append(button);
  row.append(last);
  return row;
}

function columnRow(column, index) {
  const row = $("column").content.firstElementChild.cloneNode(true);
  for (const element of row.querySelectorAll("[id],[for]")) {
    for (const name of ["id", "for"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, element.getAttribute(name).replace("c--", `c${index}-`));
    }
  }
  for (const name of row.querySelectorAll("legend bdi, label bdi, .src bdi")) name.textContent = column.name;
  const get = (part) => row.querySelector(`#c${index}-${part}`);
  const field = fields().find((other) => other.name === column.field);
  const isUsed = column.field !== undefined && column.field !== null;
  row.firstElementChild.classList.toggle("out-of", !isUsed);
  [get("use").value, get("use").checked] = [index, isUsed];
  get("name").value = column.field ?? column.name;
  get("kind").value = column.type;
  [get("required").value, get("required").checked] = [index, Boolean(field?.required)];
  get("meaning").value = field?.description ?? "";
  get("parse").value = column.parse ?? "";
  get("scale").value = column.scale ?? field?.scale ?? "";
  // Days and times of a table are no text that has a form.
  row.querySelector(".c-time").hidden = !["date", "timestamp"].includes(column.type) || (isTable() && !column.parse);
  row.querySelector(".c-scale").hidden = column.type !== "decimal";
  const nulls = (column.nullWords ?? []).map(({ word }) => `“${word}”`).join(", ");
  row.querySelector(".src small").textContent = column.nulls > 0 ? `${grouped(column.nulls)} empty${nulls && ` with ${nulls}`}` : "";
  const filled = found.records > 0 ? Math.floor(100 * (found.records - column.nulls) / found.records) : 100;
  const bar = row.querySelector(".mini-bar");
  bar.setAttribute("aria-label", `${filled} % of rows are filled`);
  bar.querySelector(".l-on").setAttribute("width", filled);
  bar.before(...column.examples.slice(0, 2).map((example) => one("span", example, { class: "mono", dir: "auto" })));
  const notes = found.notes.filter((note) => note.column === column.name);
  const told = row.querySelector(".c-told");
  told.hidden = notes.length === 0;
  told.replaceChildren(...notes.slice(0, 10).map((note) => remark("div", note)));
  [row.dataset.key, row.dataset.kind] = [keyOf(column), column.type];
  if (to) for (const part of ["kind", "required", "meaning", "scale"]) get(part).disabled = true;
  return row;
}

/* A change of a column, kept until the file is another one. */
function edited(key, change) {
  const column = found.columns.find((other) => keyOf(other) === key);
  if (!column) return undefined;
  edits[key] = { ...edits[key], field: column.field, ...change };
  if (change.name) edits[key].field = change.name;
  return infer();
}

function typed(row) {
  const get = (part) => row.querySelector(`[name=${part}]`).value.trim();
  return { kind: get("kind"), scale: get("scale"), parse: get("kind") === row.dataset.kind ? get("parse") : "" };
}

function flagged(...more) {
  // The last word counts, but for what may be said several times.
  const many = ["--null", "--round", "--skip-lines"];
  const replaced = new Set(more.map(({ flag }) => flag).filter((flag) => !many.includes(flag)));
  flags = [...flags.filter(({ flag }) => !replaced.has(flag)), ...more];
  return infer();
}

const SIGNS = { d: "day", m: "month", b: "month", B: "month", Y: "year", y: "year", H: "hour", M: "minute", S: "second" };
const kindWord = (kind) => $("column").content.querySelector(`[name=kind] [value=${kind}]`)?.textContent ?? kind;
const WORDS = {
  "--null": (value) => `Read ${value.split("=").pop()} as empty`,
  "--types": (value) => {
    const [, column, kind, form] = value.match(/^(.*)=([a-z]+)(?:\(\d+\))?(?::(.*))?$/s) ?? [];
    return kind ? `Read ${column} as ${kindWord(kind)}${form ? `: ${form.replace(/%([A-Za-z])/g, (all, sign) => SIGNS[sign] ?? all)}` : ""}` : "";
  },
  "--ignore": (value) => `Leave ${value} out`,
  "--encoding": (value) => `Read as ${value}`,
  "--delimiter": (value) => `Between values: ${value}`,
  "--records": (value) => `Use ${value}`,
  "--members": () => "Each member is a record",
  "--zone": (value) => `Zone ${value}`,
  "--round": (value) => `Round ${value}`,
  "--decimal-comma": () => "Decimal comma",
  "--no-header": () => "There is no line of names",
  "--skip-lines": (value) => `Leave line ${value} out`,
  "--empty-text": () => "Keep empty texts",
  "--sheet": (value) => `Sheet ${value}`,
  "--format": (value) => `It is ${FORMATS[value] ?? value}`,
};
const labelOf = ({ flag, value }) => WORDS[flag]?.(value ?? "");

/* An answer to a question or a note is a flag of the command line. What it says of a column is shown there. */
function settle({ flag, value = "" }) {
  const key = value.includes("=") ? value.slice(0, value.lastIndexOf("=")) : value;
  const column = found.columns.find((other) => [other.name, other.field].includes(flag === "--ignore" ? value : key));
  if (flag === "--ignore" && column) return edited(keyOf(column), { use: false });
  const [, kind, scale, parse] = value.slice(key.length + 1).match(/^([a-z]+)(?:\((\d+)\))?(?::(.*))?$/) ?? [];
  // The forms of bytes are no forms of times.
  if (flag === "--types" && column && kind && !["base64", "hex"].includes(parse)) return edited(keyOf(column), { kind, scale: scale ?? "", parse: parse ?? "" });
  return flagged({ flag, value });
}

/* 4. Publish. */
function suggest() {
  const stem = file.name.replace(/(\.(csv|tsv|txt|jsonl|ndjson|json|parquet|arrow|feather|xlsx|gz|zst))+$/i, "");
  const slug = stem.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60).replace(/-+$/, "");
  // What the person typed stays; what was made of the file follows its columns.
  const put = (name, value) => {
    const field = form.elements[name];
    if (field.value === "" || field.value === suggested[name]) field.value = value;
    suggested[name] = value;
  };
  put("slug", slug.length < 3 ? `data-${slug || "set"}` : slug);
  put("title", stem.length < 4 ? `Data of ${stem}` : stem.slice(0, 140));
  const lines = fields().map((field) => `- \`${field.name}\`: ${field.title ?? field.type}`);
  put("readme", `${grouped(found.records)} records of the file ${file.name}.\n\n${lines.join("\n")}`.slice(0, 20_000));
}

function mark(name, message) {
  const field = form.elements[name];
  const at = field.id ? field : $(name);
  const id = `${name}-error`;
  $(id)?.remove();
  at.removeAttribute("aria-invalid");
  if (!message) return;
  at.setAttribute("aria-invalid", "true");
  at.setAttribute("aria-describedby", [id, ...(at.getAttribute("aria-describedby") ?? "").split(" ").filter((other) => other && other !== id)].join(" "));
  at.closest(".field").append(one("span", message, { class: "err", id }));
}

const FIELDS = { "/slug": "slug", "/title": "title", "/readme": "readme", "/price": "price", "/tags": "tags", "/license": "license", "/access": "readers" };

// The rules that are broken most, said before anything is sent. The service has the last word.
const RULES = [
  { name: "slug", rule: /^[a-z0-9](?:[a-z0-9-]{1,58})[a-z0-9]$/, says: "An address has 3 to 60 small letters, digits and hyphens, and no hyphen at its ends." },
  { name: "title", rule: /^.{4,140}$/, says: "A title has 4 to 140 characters." },
  { name: "readme", rule: /^[^]{20,20000}$/, says: "Say in at least 20 characters what is in it." },
];

async function create(schemaDef) {
  const { elements: at } = form;
  for (const name of Object.values(FIELDS)) if (name !== "license") mark(name, "");
  const wrong = RULES.filter(({ name, rule }) => !rule.test(at[name].value.trim()));
  for (const { name, says } of wrong) mark(name, says);
  if (wrong.length > 0) return mend(at[wrong[0].name]);
  const readers = at.readers.value;
  const body = {
    slug: at.slug.value.trim(), title: at.title.value.trim(), readme: at.readme.value.trim(), schemaDef,
    license: at.license.value, access: readers === "paid" ? "paid" : "public", visibility: readers === "private" ? "private" : "public",
  };
  const tags = at.tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
  if (tags.length > 0) body.tags = tags;
  const price = at.price.value.trim();
  if (readers === "paid" && price) body.price = price;
  try {
    await act("create_dataset", body);
    return body.slug;
  } catch (error) {
    let first = null;
    for (const { path, problem } of error.body?.details ?? []) {
      const name = FIELDS[path.split("/").slice(0, 2).join("/")];
      if (!name) continue;
      mark(name, sentence(problem));
      first ??= form.elements[name];
    }
    if (error.body?.error === "slug_taken") {
      mark("slug", "This address is taken. Choose another; everything else stays as it is.");
      first = at.slug;
    }
    if (!first) throw error;
    return mend(first);
  }
}

function mend(field) {
  busy(false);
  say("Something above is to be mended first.");
  (field.focus ? field : $("readers")).focus();
  return null;
}

async function publish() {
  place = "stopped";
  busy(true);
  calm();
  say("Preparing …");
  try {
    const schemaDef = to ? JSON.parse(form.dataset.schema) : documented(found.schemaDef);
    const convert = isTable() ? { flags: [...flags, ...columnFlags()], schemaDef } : null;
    const blob = convert ? await converted(convert) : file;
    const slug = to ?? created ?? await create(schemaDef);
    if (!slug) return;
    created = slug;
    if (!to) form.elements.slug.readOnly = true;
    const parts = Math.ceil(blob.size / PART);
    const source = form.elements.source?.value.trim();
    const begun = await act("begin_upload", {
      slug, bytes: blob.size, parts, partSize: PART, compression: file.kind === "gzip" ? "gzip" : "none",
      ...source && { sourceDeclaration: source },
    });
    const state = {
      id: begun.id, slug, agent, name: file.name, size: file.size, modified: file.lastModified, bytes: blob.size, convert,
      urls: begun.partUrls.map((part) => part.url), tags: {}, reading: found.reading, onRefused: policy(),
    };
    keep(state);
    await send(state, blob);
  } catch (error) { failed(error); }
}

async function converted(members) {
  say("Converting …");
  return act("convert_file", { base64: sent.base64, ...members });
}

function keep(state) {
  // A full or closed storage only means that a reload cannot go on.
  try { localStorage.setItem(KEPT + state.id, JSON.stringify(state)); } catch { /* nothing to do */ }
}

async function send(state, blob) {
  const done = new Map(Object.keys(state.tags).map((n) => [Number(n), partOf(blob, Number(n)).size]));
  const bar = $("sending").firstElementChild;
  $("sending").hidden = false;
  const tell = () => {
    const bytes = [...done.values()].reduce((sum, part) => sum + part, 0);
    bar.value = Math.floor(100 * bytes / blob.size);
    say(`Sent ${size(bytes)} of ${size(blob.size)}.`);
  };
  tell();
  const left = state.urls.map((_, index) => index + 1).filter((n) => !state.tags[n]);
  const worker = async () => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      state.tags[n] = await put(state.urls[n - 1], partOf(blob, n), (bytes) => { done.set(n, bytes); tell(); });
      keep(state);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  bar.value = 100;
  say("Sent. The records are judged …");
  const etags = Object.entries(state.tags).map(([n, etag]) => ({ n: Number(n), etag }));
  const { reading, onRefused } = state;
  let view = await act("complete_upload", { slug: state.slug, id: state.id, etags, onRefused, reading }, state.agent);
  localStorage.removeItem(KEPT + state.id);
  while (!["merged", "rejected"].includes(view.status)) {
    view = await act("contribution_status", { slug: state.slug, id: state.id, wait: 20 }, state.agent);
    if (view.status !== "merged" && view.status !== "rejected") await wait(1);
  }
  ended(state, view);
}

const partOf = (blob, n) => blob.slice((n - 1) * PART, n * PART);

async function put(url, part, told) {
  for (let tried = 1; ; tried += 1) {
    const answer = await new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open("PUT", url);
      request.upload.onprogress = (event) => told(event.loaded);
      request.onload = () => done({ status: request.status, etag: request.getResponseHeader("ETag"), text: request.responseText });
      request.onerror = () => done({ status: 0 });
      request.send(part);
    });
    if (answer.status >= 200 && answer.status < 300 && answer.etag) {
      told(part.size);
      return answer.etag.replace(/^"|"$/g, "");
    }
    const isFinal = answer.status >= 400 && answer.status < 500 && ![408, 429].includes(answer.status);
    if (isFinal || tried === TRIES) {
      const isForeign = new URL(url, location.href).origin !== location.origin;
      const why = isForeign && (answer.status === 0 || !answer.etag)
        ? "the store of the parts does not answer this page; its rules for browsers (CORS) may lack this address. The command line is not bound by them: sluice push FILE --create"
        : answer.status === 0 ? "the connection was lost. Nothing is sent twice: choose the same file again to go on" : `a part was refused with status ${answer.status}`;
      throw Object.assign(new Error(why), { status: answer.status, body: {} });
    }
    told(0);
    await wait(2 ** tried);
  }
}

function ended(state, view) {
  const link = (href, text) => one("a", text, { class: "btn sm", href });
  if (view.status === "rejected") {
    const details = link(`/console/contributions/${state.id}`, "See every refused row");
    const again = to ? [] : [one("p", `The dataset ${state.slug} is made and empty. Mend the columns or the file, and press the button again.`)];
    return trouble("Nothing was published", sentence(view.reason?.message ?? "the records were refused"), ...again, details);
  }
  say(sentence(view.summary ?? `published as version ${grouped(view.mergedVersion)}`));
  location.assign(`/console/datasets/${state.slug}`);
  return undefined;
}

/* Uploads that a closed tab left open. */
function unfinished() {
  const rows = [...document.querySelectorAll("[data-upload]")];
  const open = new Set(rows.map((row) => KEPT + row.dataset.upload));
  for (const key of Object.keys(localStorage)) if (key.startsWith(KEPT) && !open.has(key)) localStorage.removeItem(key);
  for (const row of rows) {
    const text = localStorage.getItem(KEPT + row.dataset.upload);
    if (!text) continue;
    const state = JSON.parse(text);
    const percent = Math.floor(100 * Object.keys(state.tags).length / state.urls.length);
    row.querySelector("[data-told]").textContent = `${state.name}, ${size(state.size)}, stopped at ${percent} %`;
    const picker = one("input", "", { type: "file", hidden: "", "aria-label": `The file ${state.name}` });
    picker.addEventListener("change", () => resume(state, picker.files[0]));
    const button = row.querySelector("[data-resume]");
    button.hidden = false;
    button.after(picker);
    button.addEventListener("click", () => picker.click());
  }
}

async function resume(state, chosen) {
  if (!chosen) return;
  place = "trouble";
  if (chosen.name !== state.name || chosen.size !== state.size || chosen.lastModified !== state.modified) {
    trouble("This is another file, or it has changed", `The upload is of ${state.name}, ${size(state.size)}, as it was on ${new Date(state.modified).toLocaleString()}. Choose that, or cancel the upload.`);
    return;
  }
  [file, found, isReady, place] = [chosen, null, false, "stopped"];
  form.hidden = false;
  for (const part of ["s2", "s3", "s4", "s5"]) if ($(part)) $(part).hidden = true;
  busy(true);
  calm();
  try {
    let blob = chosen;
    if (state.convert) {
      sent = { base64: await base64(chosen), bytes: chosen.size, isWhole: true };
      blob = await converted(state.convert);
    }
    if (blob.size !== state.bytes) throw new Error("the file is read otherwise now; cancel the upload and begin anew");
    await send(state, blob);
  } catch (error) { failed(error); }
}

/* The page as it is with a script. */
for (const element of document.querySelectorAll(".nojs")) element.hidden = true;
const [input, drop] = [$("file"), $("drop")];
input.addEventListener("change", () => { if (input.files[0]) look(input.files[0]); });
choose.addEventListener("submit", (event) => { event.preventDefault(); if (input.files[0]) look(input.files[0]); });
for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length > 1) trouble("One file at a time", "Several tables are one dataset each: their columns differ.");
  else if (event.dataTransfer.files[0]) look(event.dataTransfer.files[0]);
});
form.addEventListener("submit", (event) => {
  // A file that a form has read is in the form, and the server goes on with it.
  if (!found) return;
  event.preventDefault();
  if (event.submitter?.id === "again") infer();
  else publish();
});
form.addEventListener("change", ({ target }) => {
  if (!found) return;
  const row = target.closest("#columns > li");
  if (row) {
    const part = target.name;
    const change = target.type === "checkbox" ? { [part]: target.checked }
      : ["kind", "scale", "parse"].includes(part) ? typed(row) : { [part]: target.value.trim() };
    edited(row.dataset.key, change);
  } else if (target.name === "refused") infer();
  else if (DIALECT[target.name]) {
    // What was chosen before is taken back where nothing is.
    const said = target.name === "nulls" ? target.value.split(",").map((word) => word.trim()).filter(Boolean) : target.value.trim() ? [target.value.trim()] : [];
    const flag = DIALECT[target.name];
    flags = flags.filter((other) => other.flag !== flag);
    const isBare = ["--no-header", "--decimal-comma"].includes(flag);
    flagged(...said.map((value) => ({ flag, value: isBare ? "" : value })));
  }
});
unfinished();
