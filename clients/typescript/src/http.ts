import { Credential, type CredentialOptions } from './credential.js';
import { ChannelTranscriptsError, errorOf, noResponseError } from './errors.js';
import { isSafeToRepeat, OPERATIONS, type OperationId, type ParametersOf, type ResultOf } from './operations.js';

const RETRIES_DEFAULT = 2;
/** A longer `Retry-After` is the business of the caller. */
const WAIT_SECONDS_MAX = 60;
/** A client that follows a job for hours meets restarts and rate limits. The pauses between the attempts add up to three minutes. */
export const RETRIES_WHILE_FOLLOWING = 7;
/** The status of `GET /health/ready` that says the same as its body. */
const NOT_READY = 503;
const UNAUTHORIZED = 401;

export interface ClientOptions extends CredentialOptions {
  /** The URL of the service, such as `https://transcripts.example.com`. */
  baseUrl: string;
  /** How often a failed call is repeated, if it may be; 2 by default. */
  retries?: number;
  /** Additional headers of each call, for example of a trace. */
  headers?: () => Record<string, string>;
  /** Replaces the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export interface CallOptions {
  /** Cancels the call. Transcripts fetched before that are charged. */
  signal?: AbortSignal;
  /** Identifies the call in errors and in the log of the service. */
  requestId?: string;
  /** How often the call is repeated; as the client by default. */
  retries?: number;
}

/** Waits for some seconds; rejects with the reason of the signal when that aborts first. */
export type Pause = (seconds: number, signal: AbortSignal | undefined) => Promise<void>;

export const pause: Pause = async (seconds, signal) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ended = new Promise<void>((resolve) => (timer = setTimeout(resolve, seconds * 1000)));
  await unlessAborted(ended, signal).finally(() => clearTimeout(timer));
};

/** Sends the calls of a client, and repeats those that failed and may be repeated. */
export class Http {
  private readonly baseUrl: string;
  private readonly credential: Credential;

  constructor(
    private readonly options: ClientOptions,
    readonly pause: Pause,
  ) {
    const { baseUrl } = options;
    if (!/^https?:\/\/[^/@]+(?:\/|$)/.test(baseUrl)) {
      // A key in the wrong place, or a password, is not shown.
      const shown = /ctk_|@/.test(baseUrl) ? ' without a user and password' : `, but is "${baseUrl}"`;
      throw new TypeError(`baseUrl must be a URL such as https://transcripts.example.com${shown}.`);
    }
    this.credential = new Credential(options);
    this.baseUrl = baseUrl.replace(/\/+$/, '');
  }

  /** Calls an operation and returns the parsed body, or its text when it is not JSON. Throws ChannelTranscriptsError. */
  call<Id extends OperationId>(id: Id, parameters: ParametersOf<Id>, options: CallOptions = {}): Promise<ResultOf<Id>> {
    return this.send(id, parameters, options, async (response) => {
      if (response.status === 204) return undefined as ResultOf<Id>;
      const isJson = response.headers.get('Content-Type')?.startsWith('application/json');
      return (isJson ? await response.json() : await response.text()) as ResultOf<Id>;
    });
  }

  /** Calls an operation and passes the successful response to `read`. */
  async send<Id extends OperationId, Result>(
    id: Id,
    parameters: ParametersOf<Id>,
    { signal, requestId, retries = this.options.retries ?? RETRIES_DEFAULT }: CallOptions,
    read: (response: Response, call: string) => Promise<Result>,
    accept?: string,
  ): Promise<Result> {
    const headers = new Headers(this.options.headers?.());
    if (accept !== undefined) headers.set('Accept', accept);
    if (requestId !== undefined) headers.set('X-Request-Id', requestId);
    for (const [name, value] of Object.entries(parameters.header ?? {})) headers.set(name, String(value));
    if (parameters.body !== undefined) headers.set('Content-Type', 'application/json');
    const [method = '', path = ''] = OPERATIONS[id].split(' ');
    const url = `${this.baseUrl}${pathOf(path, parameters.path ?? {})}${queryOf(parameters.query ?? {})}`;
    const call = `${method} ${url}`;
    const body = parameters.body === undefined ? null : JSON.stringify(parameters.body);
    const init = { method, headers, body, ...(signal && { signal }) };
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.fetch(url, init);
        if (!response.ok && !(id === 'getReady' && response.status === NOT_READY)) {
          throw errorOf(call, response, await response.json().catch(() => undefined), this.baseUrl);
        }
        return await read(response, call);
      } catch (thrown) {
        const error = withCall(thrown, call, signal);
        const given = error instanceof ChannelTranscriptsError ? (error.retryAfterSeconds ?? 0) : 0;
        if (attempt > retries || signal?.aborted || given > WAIT_SECONDS_MAX) throw error;
        if (!mayBeRepeated(error, isSafeToRepeat(id, headers))) throw error;
        // `Retry-After` is a lower bound: a restart can take longer.
        await this.pause(Math.max(given, Math.min(WAIT_SECONDS_MAX, 2 ** attempt)), signal);
      }
    }
  }

  /** Sends a request. When its token is refused, which costs nothing, it is sent once more with a new one. */
  private async fetch(url: string, init: RequestInit & { headers: Headers }): Promise<Response> {
    const attempt = async (): Promise<[Response, string]> => {
      const credential = await unlessAborted(this.credential.value(), init.signal);
      init.headers.set('Authorization', `Bearer ${credential}`);
      return [await (this.options.fetch ?? fetch)(url, init), credential];
    };
    const [response, credential] = await attempt();
    if (response.status !== UNAUTHORIZED || !this.credential.discard(credential)) return response;
    // Read to its end, so that the connection can be used again.
    await response.text().catch(() => undefined);
    return (await attempt())[0];
  }
}

/** What ends with each signal. One listener does for all of it: Node.js warns when a signal has more than ten. */
const endings = new WeakMap<AbortSignal, Set<() => void>>();

/** Settles as the work does, or rejects with the reason of the signal when that aborts first. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  let ends = endings.get(signal);
  if (!ends) {
    const all = (ends = new Set());
    endings.set(signal, all);
    signal.addEventListener('abort', () => all.forEach((end) => end()), { once: true });
  }
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  ends.add(abort);
  return Promise.race([work, aborted]).finally(() => ends.delete(abort));
}

/**
 * The error of a lost connection or response, with the call and the cause such as `ECONNREFUSED`: of itself `fetch` says only
 * "fetch failed" or "terminated". Returns an error of the service, and any error of a cancelled call, as it is.
 *
 * @param call its method and URL; the key is in neither
 */
export function withCall(error: unknown, call: string, signal: AbortSignal | undefined): unknown {
  if (error instanceof ChannelTranscriptsError || signal?.aborted) return error;
  const cause = fieldOf(error, 'cause') ?? error;
  const code = fieldOf(cause, 'code');
  const message = String(fieldOf(error, 'message') ?? error);
  return noResponseError(`${call}: ${message}${typeof code === 'string' ? ` (${code})` : ''}`, cause);
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/**
 * A call that the service itself refused has cost nothing. Without an answer of the service (a lost connection, an error page
 * of a proxy) the call may have run and may be charged, so only a safe one is repeated.
 */
function mayBeRepeated(error: unknown, isSafe: boolean): boolean {
  if (!(error instanceof ChannelTranscriptsError)) return false;
  const isUnanswered = error.code === 'unexpected_response' || error.code === 'no_response';
  return error.retryable && (isSafe || !isUnanswered);
}

function pathOf(path: string, values: object): string {
  const given = new Map<string, unknown>(Object.entries(values));
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given.get(name))));
}

function queryOf(values: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** The values without those that are undefined. */
export function defined<T extends object>(values: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** Yields the items of all pages. */
export async function* itemsOf<Item, Position>(
  read: (after: Position | undefined) => Promise<[Item[], Position | null]>,
): AsyncGenerator<Item, void, undefined> {
  let position: Position | undefined;
  do {
    const [items, next] = await read(position);
    yield* items;
    position = next ?? undefined;
  } while (position !== undefined);
}
