// Drives Chromium or Firefox for one test: reads a command a line, writes an answer a line.
//
// A command is `{"id": 7, "do": "click", "page": 1, …}`, its answer `{"id": 7, "value": …}` or `{"id": 7, "error": …}`.
// The arguments are the folder that tests/components/browser.sh prints, and `chromium` or `firefox`.
//
// Invariant: every wait is for a condition and has a limit. The browser ends with this process, and this process with
// its input.

import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { start as startFirefox } from './firefox.mjs';

/** The longest wait for an element, a page or an answer, in milliseconds. */
const PATIENCE = 30_000;
/** The longest that a whole command, and the end of the browser, may take. */
const COMMAND = 90_000;
const END = 10_000;
/** The flags that keep Chromium from calling hosts of its own. */
const FLAGS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-gpu',
  '--disable-quic',
  '--disable-sync',
  '--no-first-run',
];
/** The hash of the style sheet `body {}`, by which the policy of a page names it. */
const PLAYWRIGHT_STYLE = 'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=';
/** The rules that pages are judged by. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const [folder, name] = process.argv.slice(2);
const require = createRequire(path.join(folder, 'index.js'));
const axe = require('axe-core').source;

const profile = await mkdtemp(path.join(tmpdir(), 'sluice-browser-'));
const people = new Map();
const pages = new Map();
const sites = [];
/** The browser, what gives a page the colours that its person prefers, and what gives it the focus. */
let browser;
let show;
let focus;
let last = 0;
let front;
let isEnding = false;

async function startChromium(env) {
  const { chromium } = require('playwright-core');
  return {
    browser: await chromium.launch({ executablePath: path.join(folder, 'chromium'), args: FLAGS, env }),
    show: ({ page, dark }) => page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' }),
    // Each page has it anyway.
    focus: async () => {},
  };
}

/** What went wrong on a page, in the order of its happening. */
function listen(entry) {
  const { page, complaints, visited } = entry;
  page.on('console', (message) => {
    const from = message.location().url;
    // The answer to a visit has the status that the test asked for.
    const isOwn = message.text().startsWith('Failed to load resource') && visited.has(from);
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    if (!isOwn) complaints.push(`console: ${message.text()} (${from})`);
  });
  page.on('pageerror', ({ message }) => {
    // A picture of Firefox begins with a style of Playwright's own.
    if (message.includes(PLAYWRIGHT_STYLE)) return;
    // So Firefox tells what the policy refuses.
    const isPolicy = message.startsWith('The page’s settings blocked');
    complaints.push(isPolicy ? `console: Content Security Policy: ${message}` : `script: ${message}`);
  });
  page.on('response', (response) => {
    // The console of Chromium has these, that of Firefox has not.
    const isMissing = response.status() >= 400 && !visited.has(response.url());
    if (name === 'firefox' && isMissing) complaints.push(`resource: ${response.status()} ${response.url()}`);
  });
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    entry.requests.push(`${request.method()} ${request.url()}`);
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) {
      visited.add(request.url());
      entry.origin = origin;
    } else if (origin !== entry.origin && protocol !== 'data:') {
      complaints.push(`other origin: ${request.method()} ${request.url()}`);
    }
  });
}

/** The element that a command names by `label`, by `role` and `name`, by `text` or by `css`. */
function element({ page, label, role, name, text, css }) {
  const where = pages.get(page).page;
  if (label !== undefined) return where.getByLabel(label, { exact: true });
  if (role !== undefined) return where.getByRole(role, name === undefined ? {} : { name, exact: true });
  if (text !== undefined) return where.getByText(text).first();
  return where.locator(css);
}

/** The answer that a visit ends with, redirects followed. */
async function visit(entry, begin) {
  const { page } = entry;
  const isLast = (response) =>
    response.request().isNavigationRequest() &&
    response.frame() === page.mainFrame() &&
    !(response.status() >= 300 && response.status() < 400);
  const [response] = await Promise.all([page.waitForResponse(isLast), page.waitForEvent('load'), begin()]);
  await show(entry);
  return { status: response.status(), url: page.url(), headers: await response.allHeaders() };
}

/** The element that has the focus, as a person hears of it. */
function focused() {
  const at = document.activeElement;
  if (!at || at === document.body) return { tag: 'body', name: '', outlined: false };
  const label = at.labels && at.labels.length > 0 ? at.labels[0].textContent : '';
  const style = getComputedStyle(at);
  return {
    tag: at.tagName.toLowerCase(),
    type: at.getAttribute('type') ?? '',
    name: (at.getAttribute('aria-label') || label || at.textContent || '').replace(/\s+/g, ' ').trim(),
    href: at.getAttribute('href') ?? '',
    outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0,
  };
}

/** The elements that stick out to the right of the window, when the page can be scrolled there. */
function overflowing() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const all = [...document.querySelectorAll('body *')];
  const wide = all.filter((at) => at.getBoundingClientRect().right > clientWidth + 1);
  const named = wide.map((at) => `${at.tagName.toLowerCase()}.${at.getAttribute('class') ?? ''}`);
  return [`${scrollWidth} of ${clientWidth} px`, ...named.slice(0, 10)];
}

const commands = {
  /** Opens a window of a person of its own: cookies, width, colours. */
  async person({ width = 1440, dark = false, scripts = true }) {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
      javaScriptEnabled: scripts,
    });
    context.setDefaultTimeout(PATIENCE);
    people.set(++last, { context, dark, scripts });
    return last;
  },
  async page({ person }) {
    const { context, dark, scripts } = people.get(person);
    const page = await context.newPage();
    const entry = { page, dark, scripts, origin: '', complaints: [], requests: [], visited: new Set() };
    await show(entry);
    listen(entry);
    pages.set(++last, entry);
    return last;
  },
  cookies: ({ person }) => people.get(person).context.cookies(),
  cookie: ({ person, cookie }) => people.get(person).context.addCookies([cookie]),

  async goto({ page, url }) {
    const entry = pages.get(page);
    const response = await entry.page.goto(url, { waitUntil: 'load' });
    await show(entry);
    return { status: response.status(), url: entry.page.url(), headers: await response.allHeaders() };
  },
  /** What a click, or a key, has the browser save: its name, and its bytes in base64. */
  async download(command) {
    const where = pages.get(command.page).page;
    const begin = () => (command.key === undefined ? element(command).click() : where.keyboard.press(command.key));
    const [saved] = await Promise.all([where.waitForEvent('download'), begin()]);
    const base64 = (await readFile(await saved.path())).toString('base64');
    // Otherwise the next one of this name gets another, in Firefox.
    await saved.delete();
    return { name: saved.suggestedFilename(), base64 };
  },
  submit: (command) => visit(pages.get(command.page), () => element(command).click()),
  enter: ({ page, key }) => visit(pages.get(page), () => pages.get(page).page.keyboard.press(key)),
  click: (command) => element(command).click(),
  async fill(command) {
    await element(command).fill(command.with);
    // Firefox has the text from a script, and so does not tell of the change when the focus goes on.
    if (name === 'firefox') await element(command).dispatchEvent('change');
  },
  async pick(command) {
    await element(command).selectOption(command.with);
  },
  check: (command) => element(command).check(),
  /** Chooses the file at a path, as a person does in the dialogue. */
  choose: (command) => element(command).setInputFiles(command.file),
  /** Drops the file at a path on an element. */
  async drop({ file, ...command }) {
    const where = pages.get(command.page).page;
    const given = [path.basename(file), (await readFile(file)).toString('base64')];
    const dragged = await where.evaluateHandle(([name, base64]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))], name));
      return transfer;
    }, given);
    for (const event of ['dragenter', 'dragover', 'drop']) await element(command).dispatchEvent(event, { dataTransfer: dragged });
  },
  /** Lets only the first requests with this method and path through, and leaves all later ones without an answer. */
  async stall({ page, method, path, after }) {
    let seen = 0;
    await pages.get(page).page.route((url) => url.pathname.startsWith(path), (route) => {
      if (route.request().method() !== method || seen++ < after) return route.continue();
      return undefined;
    });
  },
  close: ({ page }) => pages.get(page).page.close(),
  press: ({ page, key }) => pages.get(page).page.keyboard.press(key),
  type: ({ page, keys }) => pages.get(page).page.keyboard.type(keys),
  see: (command) => element(command).waitFor({ state: 'visible' }),
  at: ({ page, url }) => pages.get(page).page.waitForURL(url),
  count: (command) => element(command).count(),
  read: (command) => element(command).innerText(),
  attribute: (command) => element(command).getAttribute(command.attribute),
  html: ({ page }) => pages.get(page).page.content(),
  url: ({ page }) => pages.get(page).page.url(),
  evaluate: ({ page, script }) => pages.get(page).page.evaluate(script),
  focused: ({ page }) => pages.get(page).page.evaluate(focused),
  overflowing: ({ page }) => pages.get(page).page.evaluate(overflowing),
  frames: ({ page }) => pages.get(page).page.frames().slice(1).map((frame) => frame.url()),
  requests: ({ page }) => pages.get(page).requests,
  async complaints({ page }) {
    const entry = pages.get(page);
    return entry.complaints.splice(0);
  },
  /** Shows the same document at another width and in other colours. */
  async look({ page, width, dark }) {
    const entry = pages.get(page);
    await entry.page.setViewportSize({ width, height: 900 });
    entry.dark = dark;
    await show(entry);
  },
  async axe({ page }) {
    const where = pages.get(page).page;
    if (!(await where.evaluate('typeof axe === "object"'))) await where.evaluate(axe);
    const options = { runOnly: RULES, resultTypes: ['violations'], preload: false };
    const found = await where.evaluate((options) => globalThis.axe.run(document, options), options);
    return found.violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      at: nodes.slice(0, 5).map((node) => `${node.target.join(' ')}: ${node.failureSummary}`),
    }));
  },
  async picture({ page, file }) {
    await pages.get(page).page.screenshot({ path: file, fullPage: true });
  },

  /** Serves pages by path from another origin; `host` decides if it is the same site as the service. */
  async site({ host, files }) {
    const server = createServer((request, response) => {
      const body = files[request.url.split('?')[0]];
      response.writeHead(body === undefined ? 204 : 200, { 'content-type': 'text/html; charset=utf-8' });
      response.end(body ?? '');
    });
    await new Promise((done, failed) => server.once('error', failed).listen(0, '127.0.0.1', done));
    sites.push(server);
    return `http://${host}:${server.address().port}`;
  },

  /** Leaves of every page a picture, its text and what went wrong. */
  async keep({ folder }) {
    await mkdir(folder, { recursive: true });
    for (const [id, { page, complaints, requests }] of pages) {
      const file = (name) => path.join(folder, `page-${id}${name}`);
      await page.screenshot({ path: file('.png'), fullPage: true }).catch(() => {});
      await writeFile(file('.html'), await page.content().catch((error) => `${error}`));
      await writeFile(file('.log'), [page.url(), ...complaints, ...requests, ''].join('\n'));
    }
  },
};

/** Runs a command, in the window that a person would have clicked before. */
async function run(what, command) {
  if (!(what in commands)) throw new Error(`there is no command ${what}`);
  if (command.page !== front && pages.has(command.page)) {
    front = command.page;
    await focus(pages.get(front));
  }
  return commands[what](command);
}

/** The value of a command, or an error when it takes too long. */
async function within(command) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error(`no end within ${COMMAND} ms`)), COMMAND);
  });
  return Promise.race([command, late]).finally(() => clearTimeout(timer));
}

async function end(status) {
  if (isEnding) return;
  isEnding = true;
  setTimeout(() => process.exit(status), END);
  for (const site of sites) site.close();
  await browser?.close().catch(() => {});
  await rm(profile, { recursive: true, force: true }).catch(() => {});
  process.exit(status);
}

try {
  // Why a folder of its own: browsers write below HOME, which the tests leave alone.
  const env = { ...process.env, HOME: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile };
  const start = { chromium: startChromium, firefox: (env) => startFirefox(folder, require, env) }[name];
  ({ browser, show, focus } = await start(env));
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  await end(1);
}
browser.on('disconnected', () => end(1));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: what, ...command } = JSON.parse(line);
  let answer;
  try {
    answer = { id, value: (await within(run(what, command))) ?? null };
  } catch (error) {
    answer = { id, error: `${error.message ?? error}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await end(0);
