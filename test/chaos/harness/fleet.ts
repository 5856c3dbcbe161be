import { setTimeout as sleep } from 'node:timers/promises';
import { send, type HttpResponse } from '../../harness/http-request.js';
import type { RandomSource } from './random.js';
import { ADMIN_TOKEN, Service, type Customer } from './service.js';

/** A request is repeated on processes at random for this long, since any of them may be killed or without its database. */
const ANSWERED_WITHIN_MS = 60_000;
const REQUEST_MS_MAX = 15_000;
const PAUSE_MS = 100;

type JsonResponse = Pick<HttpResponse, 'status' | 'body' | 'text'>;

/** Several processes of the service on one database, of which any may be killed at any time. */
export class Fleet {
  private readonly services: (Service | undefined)[] = [];
  /** Of every process that was ever started. */
  readonly logFiles: string[] = [];
  kills = 0;

  private constructor(
    private readonly folder: string,
    private readonly environment: Record<string, string>,
    private readonly random: RandomSource,
  ) {}

  static async start(
    folder: string,
    environment: Record<string, string>,
    count: number,
    random: RandomSource,
  ): Promise<Fleet> {
    const fleet = new Fleet(folder, environment, random);
    // The first one alone, which migrates the database.
    for (let index = 0; index < count; index += 1) await fleet.launch(index);
    return fleet;
  }

  get running(): Service[] {
    return this.services.filter((service) => service !== undefined);
  }

  /** Ends one process, and starts another in its place. */
  async replaceOne(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const index = this.random.below(this.services.length);
    const service = this.services[index];
    if (!service) return;
    this.services[index] = undefined;
    if (signal === 'SIGKILL') this.kills += 1;
    await service.stop(signal);
    await this.launch(index);
  }

  async stop(signal?: NodeJS.Signals): Promise<void> {
    await Promise.all(this.running.map((service) => service.stop(signal)));
  }

  /** Sends a request with a customer's key. */
  call(customer: Customer, method: string, path: string, options: RequestOptions = {}): Promise<JsonResponse> {
    return this.untilAnswered(method, path, { Authorization: `Bearer ${customer.key}`, ...options.headers }, options);
  }

  async admin(method: string, path: string, body?: object): Promise<void> {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    const { status, text } = await this.untilAnswered(method, `/admin${path}`, headers, body ? { body } : {});
    if (status >= 400) throw new Error(`${method} /admin${path} answers ${status}: ${text}`);
  }

  /** Repeats a request until a process answers it with anything but 5xx. */
  private async untilAnswered(
    method: string,
    path: string,
    headers: Record<string, string>,
    { body }: RequestOptions,
  ): Promise<JsonResponse> {
    const endsAtMs = performance.now() + ANSWERED_WITHIN_MS;
    const request = {
      headers: { 'Content-Type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
      timeoutMs: REQUEST_MS_MAX,
    };
    let last = 'there was no process';
    while (performance.now() < endsAtMs) {
      const { url } = this.random.pick(this.running);
      const response = await send(url, method, path, request).catch(String);
      if (typeof response !== 'string' && response.whole && response.status < 500) return response;
      last = typeof response === 'string' ? response : `${response.status} ${response.text}`;
      await sleep(PAUSE_MS);
    }
    throw new Error(`${method} ${path} is not answered within ${ANSWERED_WITHIN_MS / 1000} s: ${last}`);
  }

  private async launch(index: number): Promise<void> {
    const service = await Service.start(this.folder, this.environment);
    this.logFiles.push(service.logFile);
    this.services[index] = service;
  }
}

interface RequestOptions {
  body?: object;
  headers?: Record<string, string>;
}
