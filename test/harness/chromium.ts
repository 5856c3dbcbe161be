import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { isInstalled } from './programs.js';
import { until } from './until.js';

const PROGRAM = 'chromium';
export const chromiumIsInstalled = isInstalled(PROGRAM);

const OPTIONS = [
  ...['--headless', '--remote-debugging-pipe', '--no-first-run', '--disable-gpu', '--disable-dev-shm-usage'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars'],
  // The tests also run as root, for whom the sandbox does not start, and open pages of the service only.
  '--no-sandbox',
];

/** The keys that tests press, as the protocol names them. */
const KEYS = {
  Tab: { code: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  Escape: { code: 'Escape', windowsVirtualKeyCode: 27 },
  ArrowDown: { code: 'ArrowDown', windowsVirtualKeyCode: 40 },
  Backspace: { code: 'Backspace', windowsVirtualKeyCode: 8 },
  Home: { code: 'Home', windowsVirtualKeyCode: 36 },
} as const;

type Parameters = Record<string, unknown>;

interface Message {
  id?: number;
  method?: string;
  params?: any;
  sessionId?: string;
  result?: any;
  error?: { message: string };
}

/** A headless Chromium, by the DevTools protocol over a pipe. It has one page at a time. */
export class Chromium {
  private readonly replies = new Map<number, (message: Message) => void>();
  private page: ChromiumPage | undefined;
  private count = 0;
  private received = '';

  private constructor(
    private readonly browser: ChildProcess,
    private readonly profile: string,
  ) {
    const output = browser.stdio[4] as Readable;
    output.setEncoding('utf8');
    output.on('data', (text: string) => this.read(text));
  }

  static start(): Chromium {
    const profile = mkdtempSync(join(tmpdir(), 'chromium-'));
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    const browser = spawn(PROGRAM, [...OPTIONS, `--user-data-dir=${profile}`, 'about:blank'], { stdio: [...stdio] });
    return new Chromium(browser, profile);
  }

  /** Opens a page that shares no storage, cookies and cache with the pages before it. */
  async open(): Promise<ChromiumPage> {
    const { browserContextId } = await this.send('Target.createBrowserContext');
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new ChromiumPage(this, String(sessionId), String(browserContextId));
    this.page = page;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'Accessibility']) await page.send(`${domain}.enable`);
    return page;
  }

  /** Sends a command of the protocol, to a page where a session is given. */
  send(method: string, params: Parameters = {}, sessionId?: string): Promise<any> {
    const id = (this.count += 1);
    return new Promise((resolve, reject) => {
      this.replies.set(id, ({ result, error }) => {
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      });
      (this.browser.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  async close(): Promise<void> {
    const ended = once(this.browser, 'exit');
    // Not by a signal: its other processes would still write to the profile.
    await this.send('Browser.close');
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }

  private read(text: string): void {
    const parts = (this.received + text).split('\0');
    this.received = parts.pop() ?? '';
    for (const part of parts) {
      const message = JSON.parse(part) as Message;
      if (message.id === undefined) this.page?.notice(message);
      else this.replies.get(message.id)?.(message);
    }
  }
}

/** The one page of a browser context. */
export class ChromiumPage {
  /** Violations of the content security policy, errors of scripts and what the console reports as errors. */
  readonly problems: string[] = [];
  /** The URLs that were requested. */
  readonly requests: string[] = [];

  constructor(
    private readonly chromium: Chromium,
    private readonly sessionId: string,
    private readonly contextId: string,
  ) {}

  /** Sends a command of the protocol. */
  send(method: string, params: Parameters = {}): Promise<any> {
    return this.chromium.send(method, params, this.sessionId);
  }

  async open(url: string): Promise<void> {
    await this.send('Page.navigate', { url });
    await until(() => this.evaluate<boolean>('document.readyState === "complete" && location.protocol !== "about:"'));
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      ...{ expression, returnByValue: true, awaitPromise: true },
    });
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result.value as T;
  }

  async press(key: keyof typeof KEYS): Promise<void> {
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...KEYS[key] });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key, ...KEYS[key] });
  }

  /** Types into what has the focus. */
  async type(text: string): Promise<void> {
    await this.send('Input.insertText', { text });
  }

  /** Presses Tab until a control with this accessible name has the focus. */
  async tabTo(name: string): Promise<void> {
    const seen: string[] = [];
    for (let presses = 0; presses < 200; presses += 1) {
      await this.press('Tab');
      seen.push(await this.focused());
      if (seen.at(-1) === name) return;
    }
    throw new Error(`Tab does not reach ${name}, but ${[...new Set(seen)].join(' | ')}`);
  }

  /** The accessible name of what has the focus. */
  async focused(): Promise<string> {
    const { result } = await this.send('Runtime.evaluate', { expression: 'document.activeElement' });
    const { nodes } = await this.send('Accessibility.getPartialAXTree', { objectId: result.objectId });
    return String(nodes[0]?.name?.value ?? '');
  }

  /** The nodes of the accessibility tree with these roles, as `role name`. */
  async accessible(...roles: string[]): Promise<string[]> {
    const { nodes } = await this.send('Accessibility.getFullAXTree');
    const named = (nodes as any[]).filter((node) => node.ignored !== true && roles.includes(String(node.role?.value)));
    return named.map((node) => `${node.role.value} ${node.name?.value ?? ''}`);
  }

  /** The visible text of the page. */
  text(): Promise<string> {
    return this.evaluate<string>('document.body.innerText');
  }

  untilShown(text: string): Promise<void> {
    return until(async () => (await this.text()).includes(text));
  }

  async resize(width: number, height: number): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  }

  async screenshot(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(String(data), 'base64');
  }

  async close(): Promise<void> {
    await this.chromium.send('Target.disposeBrowserContext', { browserContextId: this.contextId });
  }

  /** Records an event of the protocol. */
  notice({ method, params, sessionId }: Message): void {
    if (sessionId !== this.sessionId) return;
    if (method === 'Network.requestWillBeSent') this.requests.push(String(params.request.url));
    // A response with an error status is no fault of the page.
    if (method === 'Log.entryAdded' && params.entry.level === 'error' && params.entry.source !== 'network')
      this.problems.push(String(params.entry.text));
    if (method === 'Runtime.exceptionThrown') this.problems.push(JSON.stringify(params.exceptionDetails));
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error')
      this.problems.push(JSON.stringify(params.args));
  }
}
