import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { Environment } from '../../../config/environment.js';
import type { ReadingContext } from '../../video-platform.js';
import { EgressPool } from '../egress/egress-pool.js';
import type { RawResponse } from '../egress/http-transport.js';
import { type OtherServer, RequestPipeline } from '../egress/request-pipeline.js';
import { RetryBudget } from '../egress/retry.js';
import { classifyResponse, type JsonResponse, type UpstreamResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { UnreadableError } from '../response-parsing.js';
import { readDataApiError } from './data-api-errors.js';
import { DataApiRest, REST_REASONS } from './data-api-rest.js';

const ORIGIN = 'https://www.googleapis.com';
/** InnerTube can answer instead, so a failure is retried once at most. */
const RETRIES_MAX = 1;
/** How many egresses one request is sent through when they are unreachable. */
const EGRESSES_MAX = 3;

const METHODS = ['channels', 'playlists', 'playlistItems', 'videos'] as const;
/** A method of the API (`….list`); each request costs one unit of 10,000 a day. */
export type DataApiMethod = (typeof METHODS)[number];

/** Why the API is not the source of an answer. The last three are decisions of the caller about an answer. */
const FALLBACK_REASONS = [
  ...REST_REASONS,
  'declined',
  'unreadable',
  'unsupported',
  'unknown_name',
  'doubtful',
] as const;
export type FallbackReason = (typeof FALLBACK_REASONS)[number];

/** The Data API did not answer, or its answer is not certain: InnerTube answers instead. */
export class DataApiUnansweredError extends Error {
  constructor(readonly reason: FallbackReason) {
    super(`The Data API gave no answer: ${reason}.`);
    this.name = 'DataApiUnansweredError';
  }
}

/**
 * Requests lists from the official YouTube Data API v3. It does not refuse addresses, so a circuit breaker of an egress does
 * not stop it. The key is sent in a header: a URL is part of logs and traces.
 */
@Injectable()
export class DataApiClient {
  private readonly rest = new DataApiRest(
    (reason, detail, restSeconds) => report('warn', 'youtube_data_api_rested', { reason, detail, restSeconds }),
    () => report('log', 'youtube_data_api_back', {}),
  );
  private readonly units: Counter<'method'>;
  private readonly fallbacks: Counter<'reason'>;

  constructor(
    private readonly environment: Environment,
    private readonly pipeline: RequestPipeline,
    private readonly egresses: EgressPool,
    registry: Registry,
  ) {
    const registers = [registry];
    this.units = new Counter({
      name: 'ct_data_api_units_total',
      help: 'Units of the YouTube Data API that its answers cost, by method.',
      labelNames: ['method'],
      registers,
    });
    this.fallbacks = new Counter({
      name: 'ct_data_api_fallbacks_total',
      help: 'Lookups that InnerTube answered instead of the YouTube Data API, by reason.',
      labelNames: ['reason'],
      registers,
    });
    for (const method of METHODS) this.units.inc({ method }, 0);
    for (const reason of FALLBACK_REASONS) this.fallbacks.inc({ reason }, 0);
    const { rest } = this;
    new Gauge({
      name: 'ct_data_api_resting',
      help: '1 from a failure of the YouTube Data API to its next answer, by reason.',
      labelNames: ['reason'],
      registers,
      collect() {
        for (const reason of REST_REASONS) this.set({ reason }, Number(rest.reason === reason));
      },
    });
  }

  /** Whether a key is configured. */
  get configured(): boolean {
    return this.environment.YOUTUBE_API_KEY !== undefined;
  }

  /** Counts a lookup that InnerTube answers instead. */
  countFallback(reason: FallbackReason): void {
    this.fallbacks.inc({ reason });
  }

  /**
   * Requests one list.
   *
   * @param parse reads the response; throws `UnreadableError`
   * @returns null when the requested resource does not exist (404)
   * @throws DataApiUnansweredError, and the reason of `context.signal` when that is aborted
   */
  async list<T>(
    method: DataApiMethod,
    parameters: Readonly<Record<string, string>>,
    parse: (response: unknown) => T,
    context: ReadingContext,
  ): Promise<T | null> {
    context.signal.throwIfAborted();
    if (this.rest.resting) throw new DataApiUnansweredError(this.rest.reason ?? 'failed');
    const response = await this.send(method, parameters, context);
    if (response.kind === 'json' || response.kind === 'http-error') this.units.inc({ method });
    if (response.kind === 'json') {
      this.rest.answered();
      return this.parsed(method, response.value, parse);
    }
    const { kind, reason } =
      response.kind === 'http-error'
        ? readDataApiError(response.status, parseBody(response.body))
        : ({ kind: 'failed', reason: response.kind } as const);
    if (kind === 'not-found') return null;
    if (kind !== 'declined') this.rest.rest(kind, reason);
    throw new DataApiUnansweredError(kind);
  }

  private parsed<T>(method: DataApiMethod, value: unknown, parse: (response: unknown) => T): T {
    try {
      return parse(value);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      report('warn', 'youtube_unreadable', { kind: `api-${method}`, expected: error.expected });
      throw new DataApiUnansweredError('unreadable');
    }
  }

  private async send(
    method: DataApiMethod,
    parameters: Readonly<Record<string, string>>,
    context: ReadingContext,
  ): Promise<JsonResponse> {
    const url = new URL(`/youtube/v3/${method}`, ORIGIN);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    const headers = { accept: 'application/json', 'x-goog-api-key': this.environment.YOUTUBE_API_KEY ?? '' };
    const budget = new RetryBudget(Math.min(RETRIES_MAX, this.environment.UPSTREAM_RETRIES));
    const tried: string[] = [];
    let response: JsonResponse = { kind: 'network', cause: new Error('There is no egress.') };
    while (tried.length < EGRESSES_MAX && response.kind === 'network') {
      const taken = this.egresses.takeUnpaced(tried);
      if (taken === null) break;
      tried.push(taken.egress.name);
      try {
        response = await this.pipeline.json({
          ...{ kind: `api-${method}`, client: 'DATA_API', server: SERVER, outgoing: { url, headers } },
          ...{ scope: { egress: taken.egress, context, budget }, isObsolete: () => false },
        });
      } finally {
        taken.release();
      }
    }
    return response;
  }
}

const SERVER: OtherServer = { origin: ORIGIN, classify };

/** The API states in the body of an error why it refuses; its 429 is a limit of the key and not a block of the address. */
function classify({ status, headers, body }: RawResponse): UpstreamResponse {
  if (status >= 200 && status < 300) return classifyResponse(status, headers, body, 'api');
  return { kind: 'http-error', status, media: 'other', body };
}

function parseBody(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? '');
  } catch {
    return undefined;
  }
}
