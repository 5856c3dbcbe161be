import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { WebSocket } from 'undici';
import { temporaryFolder } from '../process/program.js';

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
export const browserInstalled = spawnSync(CHROMIUM, ['--version']).status === 0;

interface Message {
  id?: number;
  method?: string;
  params?: any;
  result?: any;
  error?: { message: string };
}

/** A page in a real browser, driven by its own protocol. */
export class Page {
  /** What the page and the browser wrote to the console, and what a policy forbade. */
  readonly console: string[] = [];
  private lastId = 0;
  private readonly waiting = new Map<number, (message: Message) => void>();
  private session: string | undefined;

  private constructor(
    private readonly browser: ChildProcess,
    private readonly socket: WebSocket,
    private readonly profile: { remove(): void },
  ) {
    socket.addEventListener('message', ({ data }) => this.take(JSON.parse(String(data)) as Message));
  }

  static async open(url: string): Promise<Page> {
    const profile = temporaryFolder();
    const browser = spawn(CHROMIUM, [...QUIET, '--remote-debugging-port=0', `--user-data-dir=${profile.path}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const socket = new WebSocket(await addressOf(browser));
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    const page = new Page(browser, socket, profile);
    const { targetId } = await page.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await page.send('Target.attachToTarget', { targetId, flatten: true });
    page.session = String(sessionId);
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

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.browser.once('exit', resolve));
    this.session = undefined;
    void this.send('Browser.close');
    await ended;
    this.profile.remove();
  }

  private send(method: string, params: object = {}): Promise<any> {
    const id = (this.lastId += 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
      this.socket.send(JSON.stringify({ id, method, params, ...(this.session && { sessionId: this.session }) }));
    });
  }

  private take(message: Message): void {
    if (message.id !== undefined) this.waiting.get(message.id)?.(message);
    if (message.method === 'Log.entryAdded') this.console.push(String(message.params.entry.text));
    if (message.method === 'Runtime.exceptionThrown') this.console.push(JSON.stringify(message.params));
    if (message.method === 'Runtime.consoleAPICalled' && message.params.type === 'error') {
      this.console.push(JSON.stringify(message.params.args));
    }
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
