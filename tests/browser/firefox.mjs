// Starts Firefox for the driver. playwright-core speaks WebDriver BiDi with the Firefox of a distribution.
//
// Invariant: what that protocol does not offer yet (colours, documents without scripts) is set in the process of Firefox,
// over the same connection, before the command that asks for it ends; otherwise that command fails.

import path from 'node:path';

/** The only command of Playwright that Firefox does not know: which colours are preferred. */
const COLOURS = 'emulation.setMediaFeaturesOverride';
/**
 * What Firefox 153 ends the process of a document for, once Playwright's own world and that of the page have both read it of
 * one element. Without it Playwright reads the attribute `aria-labelledby`.
 */
const LABEL_MEMBER = '.ariaLabelledByElements';
/** The first number of messages of our own, which Playwright counts never reach. */
const OWN = 1_000_000_000;
/** The preferences. */
const PREFERENCES = {
  'ui.prefersReducedMotion': 1,
  // A document that comes back from memory never loads, for which Playwright waits.
  'browser.sessionhistory.max_total_viewers': 0,
  // The list of files that were saved would take the focus from the document.
  'browser.download.alwaysOpenPanel': false,
  // Firefox calls no host of its own.
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
};

/** Runs in the window of Firefox itself, for a tab by its id. */
function show(id, colours, scripts) {
  const { NavigableManager } = ChromeUtils.importESModule('chrome://remote/content/shared/NavigableManager.sys.mjs');
  const tab = NavigableManager.getBrowsingContextById(id);
  tab.prefersColorSchemeOverride = colours;
  tab.allowJavascript = scripts;
}

/** Asks Firefox over a socket of Playwright, which ignores answers to numbers that it did not give. */
function asker(socket, send) {
  const waiting = new Map();
  let last = OWN;
  socket.on('message', (data) => {
    const answer = JSON.parse(data);
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  return async (method, params) => {
    const id = ++last;
    const answered = new Promise((done) => waiting.set(id, done));
    send.call(socket, JSON.stringify({ id, method, params }));
    const { type, result, message } = await answered;
    if (type !== 'success' || result.type === 'exception') {
      throw new Error(`${method}: ${message ?? result.exceptionDetails.text}`);
    }
    return result;
  };
}

/**
 * Answers Playwright's command about colours in the place of Firefox, which gets all others. `scripts` says if the documents
 * of the tab that the command names may run scripts.
 */
function answerColours(WebSocket, scripts) {
  const { send } = WebSocket.prototype;
  const askers = new WeakMap();
  const set = async (socket, { contexts = [], features }) => {
    if (!askers.has(socket)) askers.set(socket, asker(socket, send));
    const ask = askers.get(socket);
    const windows = await ask('browsingContext.getTree', { 'moz:scope': 'chrome', maxDepth: 0 });
    for (const tab of contexts) {
      await ask('script.callFunction', {
        functionDeclaration: `${show}`,
        arguments: [
          { type: 'string', value: tab },
          { type: 'string', value: features['prefers-color-scheme'] ?? 'none' },
          { type: 'boolean', value: scripts() },
        ],
        target: { context: windows.contexts[0].context },
        awaitPromise: false,
      });
    }
  };
  WebSocket.prototype.send = function sendOrAnswer(message, ...rest) {
    const { id, method, params } = JSON.parse(message);
    if (method !== COLOURS) {
      send.call(this, message.replaceAll(LABEL_MEMBER, '.noSuchMember'), ...rest);
      return;
    }
    const answer = (members) => this.emit('message', Buffer.from(JSON.stringify({ id, ...members })), false);
    set(this, params).then(
      () => answer({ type: 'success', result: {} }),
      (error) => answer({ type: 'error', error: 'unknown error', message: error.message }),
    );
  };
}

/** Starts the Firefox of `folder`; returns it, what gives a page its colours, and what gives it the focus. */
export async function start(folder, require, env) {
  const { firefox } = require('playwright-core');
  let hasScripts = true;
  answerColours(require('playwright-core/lib/utilsBundle').ws, () => hasScripts);
  const browser = await firefox.launch({
    channel: 'moz-firefox',
    executablePath: path.join(folder, 'firefox'),
    args: ['--remote-allow-system-access'],
    firefoxUserPrefs: PREFERENCES,
    env,
  });
  return {
    browser,
    // Once more after every visit: a document in a group of windows of its own (COOP) forgets the colours of the tab.
    async show({ page, dark, scripts }) {
      hasScripts = scripts;
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
    },
    focus: ({ page }) => page.bringToFront(),
  };
}
