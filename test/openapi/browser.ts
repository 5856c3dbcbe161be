import { spawn, type ChildProcess } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { WebSocket } from 'undici';
import { temporaryFolder } from '../process/program.js';
import { isInstalled } from '../programs.js';
import { until } from '../until.js';

const CHROMIUM = 'chromium';
const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Whether a browser is installed on this machine. */
export const browserInstalled = isInstalled(CHROMIUM);

interface Message {
  id?: number;
  sessionId?: string;
  method?: string;
  params?: any;
  result?: any;
  error?: { message: string };
}

type Listener = (method: string, params: any) => void;

/** A real browser without a window, driven by the DevTools protocol. */
export class Browser {
  private lastId = 0;
  private readonly waiting = new Map<number, (message: Message) => void>();
  private readonly listeners = new Map<string, Listener>();

  private constructor(
    private readonly process: ChildProcess,
    private readonly socket: WebSocket,
    private readonly profile: { path: string },
  ) {
    socket.addEventListener('message', ({ data }) => this.take(JSON.parse(String(data)) as Message));
  }

  static async start(): Promise<Browser> {
    const profile = temporaryFolder();
    const browser = spawn(CHROMIUM, [...QUIET, '--remote-debugging-port=0', `--user-data-dir=${profile.path}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const socket = new WebSocket(await addressOf(browser));
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    return new Browser(browser, socket, profile);
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    // An orderly end takes seconds to store a profile that is removed.
    this.process.kill('SIGKILL');
    await ended;
    await until(() => this.removeProfile());
  }

  /** False while a process that the browser started still writes to it. */
  private async removeProfile(): Promise<boolean> {
    try {
      await rm(this.profile.path, { recursive: true, force: true });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return false;
      throw error;
    }
  }

  /** Sends a command to the browser, or to the page with this session. */
  send(method: string, params: object = {}, sessionId?: string): Promise<any> {
    const id = (this.lastId += 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
      this.socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    });
  }

  /** Calls the listener for each event of the page with this session. */
  listen(sessionId: string, listener: Listener): void {
    this.listeners.set(sessionId, listener);
  }

  private take({ id, method, params, sessionId, ...response }: Message): void {
    if (id !== undefined) this.waiting.get(id)?.(response);
    if (method !== undefined && sessionId !== undefined) this.listeners.get(sessionId)?.(method, params);
  }
}

/** A page in a browser context of its own: it shares neither storage nor cache with other pages. */
export class Page {
  /** What the page and the browser wrote to the console, and what a policy forbade. */
  readonly console: string[] = [];

  private constructor(
    private readonly browser: Browser,
    private readonly sessionId: string,
  ) {
    browser.listen(sessionId, (method, params) => this.note(method, params));
  }

  static async open(browser: Browser, url: string): Promise<Page> {
    const { browserContextId } = await browser.send('Target.createBrowserContext');
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(browser, String(sessionId));
    for (const domain of ['Runtime', 'Log', 'Page']) await page.send(`${domain}.enable`);
    await page.send('Page.navigate', { url });
    return page;
  }

  /** The value of an expression in the page; a promise is waited for. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
      // By default the browser would let its driver do what the policy of the page forbids.
      allowUnsafeEvalBlockedByCSP: false,
    });
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return result.value as unknown;
  }

  /** Types into a field as a person does, so that the page notices. */
  async type(selector: string, text: string): Promise<void> {
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await this.send('Input.insertText', { text });
  }

  private send(method: string, params: object = {}): Promise<any> {
    return this.browser.send(method, params, this.sessionId);
  }

  private note(method: string, params: any): void {
    if (method === 'Log.entryAdded') this.console.push(String(params.entry.text));
    if (method === 'Runtime.exceptionThrown') this.console.push(JSON.stringify(params));
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error')
      this.console.push(JSON.stringify(params.args));
  }
}

function addressOf(browser: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    browser.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      const address = /DevTools listening on (ws:\S+)/.exec(said)?.[1];
      if (address) resolve(address);
    });
    browser.once('exit', () => reject(new Error(`The browser did not start: ${said}`)));
  });
}
