import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request } from 'express';
import type { Logger } from 'pino';
import { hideAdmin } from './admin/http/admin.guard.js';
import { AppModule } from './app.module.js';
import type { Environment } from './config/environment.js';
import { rejectRepeatedAuthorization } from './http/bearer-token.js';
import { ignoreConditionalHeaders } from './http/conditional-headers.js';
import { Connections } from './http/connections.js';
import { EXPOSED_HEADERS } from './http/limit-headers.js';
import {
  normalizeRequestUrls,
  readQuery,
  rejectUndecodablePath,
  rejectUndocumentedPaths,
} from './http/request-paths.js';
import { warnOfMissingProxies } from './http/proxy-hops.js';
import { handleClientErrors, rejectTooManyHeaders, rejectInvalidHost } from './http/client-errors.js';
import { assignRequestContext } from './http/request-context.js';
import { createRedactor } from './http/redaction.js';
import { setSecurityHeaders } from './http/security-headers.js';
import { ShutdownState } from './http/shutdown-state.js';
import { traceRequests } from './http/trace-requests.js';
import { StrictValidationPipe } from './http/validation.js';
import { NestLogger } from './observability/logging/logger.js';
import { RequestLog } from './observability/logging/request-log.js';
import { RequestMetrics } from './observability/metrics/request-metrics.js';
import { createDocument, serveDocument } from './openapi.js';
import { TranscriptsService } from './transcripts/transcripts.service.js';
import { withoutMicroservices } from './without-microservices.js';

/**
 * What is left of the work after the grace is settled within this. A settlement that a database which is away holds up
 * gets one more try when everything is closed.
 */
const LAST_SETTLEMENTS_MS = 2_000;

/** How long a browser may remember the answer to a preflight. */
const PREFLIGHT_SECONDS = 600;

const FOR_OPERATORS = /^\/(?:admin|metrics)(?:\/|$)/;

/** What only tests change, to see in a second what takes half a minute. */
export interface HttpTimes {
  /** How long a reader may take nothing before its connection is destroyed. */
  stalledReaderMs?: number;
}

/**
 * The whole service behind HTTP, not yet listening: what `main.ts` and the tests share. With `MESSAGE_TRANSPORT` it takes
 * messages already.
 */
export async function createApp(
  environment: Environment,
  logger: Logger,
  times: HttpTimes = {},
): Promise<NestExpressApplication> {
  // Loaded only when it is needed: neither Nest's package for messages nor a client of a broker is otherwise.
  const messages = environment.MESSAGE_TRANSPORT && (await import('./messages/messages.module.js'));
  const create = (): Promise<NestExpressApplication> =>
    NestFactory.create<NestExpressApplication>(AppModule.with(environment, messages && [messages.MessagesModule]), {
      logger: new NestLogger(logger),
      abortOnError: false,
      bodyParser: false,
    });
  const app = messages ? await create() : await withoutMicroservices(create);
  app.disable('x-powered-by');
  // An ETag would be computed over bodies of megabytes that nobody may keep anyway.
  app.disable('etag');
  app.set('query parser', readQuery);
  const trusted = trustProxy(environment.TRUST_PROXY);
  app.set('trust proxy', trusted);
  const document = createDocument(app);
  const redact = createRedactor(environment.ADMIN_TOKEN, environment.METRICS_TOKEN, environment.CACHE_SECRET);
  const connections = app.get(Connections);
  app.use(connections.inTurn);
  const requestLog = new RequestLog(logger, redact);
  app.use(assignRequestContext(redact), traceRequests(redact), requestLog.log);
  app.use(app.get(RequestMetrics).countRequests(document), setSecurityHeaders);
  if (typeof trusted === 'number') app.use(warnOfMissingProxies(trusted));
  allowOrigins(app, environment.CORS_ORIGINS);
  app.use(ignoreConditionalHeaders, rejectTooManyHeaders, rejectInvalidHost, rejectRepeatedAuthorization);
  app.use(rejectUndecodablePath);
  app.use(app.get(ShutdownState).refuse);
  app.use(hideAdmin(environment), rejectUndocumentedPaths(document));
  app.useGlobalPipes(new StrictValidationPipe(redact));
  serveDocument(app, document);
  const server: Server = app.getHttpServer();
  server.once('close', () => requestLog.flush());
  connections.follow(server, times.stalledReaderMs);
  normalizeRequestUrls(server);
  handleClientErrors(server, connections, logger);
  await app.init();
  await messages?.startMessages(app, environment).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  return app;
}

/** How long the end may take, and what it waits for first. */
export interface ShutdownTimes {
  /** From the beginning until what still runs is cut off, the delay included. */
  graceSeconds: number;
  /** How long the service is not ready and still serves. */
  delaySeconds?: number;
  /** Ends the delay before its time when it is aborted. */
  hurry?: AbortSignal;
}

/**
 * Ends the service in good order: not ready, then no new connections, what runs is finished and settled, then everything
 * is closed. What still runs after the grace is cut off, and settled all the same.
 */
export async function shutDown(app: NestExpressApplication, times: ShutdownTimes): Promise<void> {
  const { graceSeconds, delaySeconds = 0, hurry } = times;
  const state = app.get(ShutdownState);
  state.stopping = true;
  const cutOffAtMs = performance.now() + graceSeconds * 1000;
  const delayMs = Math.min(delaySeconds, graceSeconds) * 1000;
  if (delayMs > 0) await sleep(delayMs, undefined, hurry && { signal: hurry }).catch(() => undefined);
  state.refusing = true;
  const remainingMs = Math.max(0, cutOffAtMs - performance.now());
  await Promise.all([
    app.get(Connections).close(app.getHttpServer(), remainingMs),
    ...state.servers.map((server) => server.close(remainingMs)),
  ]);
  const endsAtMs = cutOffAtMs + LAST_SETTLEMENTS_MS;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, endsAtMs - performance.now());
  });
  await Promise.race([app.get(TranscriptsService).idle(), late]);
  clearTimeout(timer);
  await app.close();
}

/** Preflights are answered before the methods are looked at. What is for operators is not for pages of other origins. */
function allowOrigins(app: NestExpressApplication, origins: readonly string[] | undefined): void {
  if (!origins) return;
  const cors = {
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  };
  app.enableCors(({ path }: Request, decide: (error: null, options: object) => void) => {
    decide(null, FOR_OPERATORS.test(path) ? { origin: false } : cors);
  });
}

function trustProxy(value: string): false | number | string {
  if (value === 'off') return false;
  return /^[0-9]+$/.test(value) ? Number(value) : value;
}
