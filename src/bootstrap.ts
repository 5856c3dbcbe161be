import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import express, { type Express, type Request } from 'express';
import type { Logger } from 'pino';
import { AppModule } from './app.module.js';
import { BackgroundLoops } from './background/background-loops.js';
import type { Environment } from './config/environment.js';
import { withTimeout } from './domain/waiting.js';
import { trustProxySetting, assignRequestContext } from './http/server/request-context.js';
import { DOCS_PAGE } from './http/errors/error-body.js';
import { Connections, handleClientErrors, limitConnections, ShutdownState } from './http/server/connections.js';
import { EXPOSED_HEADERS } from './http/routes/limit-headers.js';
import { redactorFor, NestLogger } from './observability/logging/logger.js';
import { rejectRepeatedHeaders, rejectUndecodablePath, securityHeaders } from './http/server/middleware.js';
import { normalizeRequestUrls } from './http/server/request-paths.js';
import { Routes } from './http/routes/routes.js';
import { RequestObserver } from './http/server/request-observer.js';
import { docsHeaders, serveDocument } from './openapi.js';
import { TranscriptsService } from './transcripts/transcripts.service.js';

/**
 * For the settlements of calls that were aborted at the end of the grace period. A settlement that an unavailable database
 * delays is retried once more when the application closes.
 */
const LAST_SETTLEMENTS_MS = 2_000;

/** How long a browser may cache a preflight response. */
const PREFLIGHT_SECONDS = 600;

/**
 * Creates the whole service, which does not listen for HTTP yet; `main.ts`, some commands and the tests share it. With
 * `MESSAGE_TRANSPORT` it already accepts messages.
 *
 * @param stalledReaderMs how long a reader may be stalled before its connection is destroyed; tests shorten it
 * @param as the role on an embedded database, where one service runs at a time
 */
export async function createApp(
  environment: Environment,
  logger: Logger,
  stalledReaderMs?: number,
  as?: 'service' | 'command',
): Promise<NestExpressApplication> {
  // Imported on demand, because the module loads a broker's client.
  const messages = environment.MESSAGE_TRANSPORT && (await import('./messages/messages.module.js'));
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.with(environment, messages && [messages.MessagesModule], as),
    new ExpressAdapter(createExpress(environment)),
    {
      ...{ logger: new NestLogger(logger), abortOnError: false, bodyParser: false },
      // A command ends with its work or a signal: no call, and nobody who holds a connection to its port, keeps it.
      forceCloseConnections: as === 'command',
    },
  );
  useMiddleware(app, environment, logger, as);
  const server: Server = app.getHttpServer();
  limitConnections(server, stalledReaderMs);
  normalizeRequestUrls(server, app.get(Routes).encodeRawUrl);
  handleClientErrors(server, app.get(Connections), logger);
  await app.init();
  try {
    await messages?.startMessages(app, environment);
  } catch (error) {
    await app.close();
    throw error;
  }
  return app;
}

function createExpress(environment: Environment): Express {
  // A path has one spelling; other ones would bypass the rules of a proxy.
  const instance = express().enable('case sensitive routing').enable('strict routing').disable('x-powered-by');
  // Express would hash bodies of megabytes for an ETag that no client may store.
  instance.disable('etag');
  return instance.set('trust proxy', trustProxySetting(environment.TRUST_PROXY));
}

/**
 * Registers the middleware in its order. A call then passes, for its route: `ApiKeyGuard` (key or token), `PlanGuard` (scope and
 * plan), `CallLimitsGuard` (rate, calls in flight), `DeclaredInput` (body, undeclared query), `StrictValidationPipe` (parameters) and
 * its controller; an error `ErrorFilter`.
 * The middleware is not registered by `MiddlewareConsumer`: Nest would run it after CORS and `/docs`, and not
 * for paths that cannot be decoded, but every response needs its id, headers, log line and metrics.
 */
export function useMiddleware(
  app: NestExpressApplication,
  environment: Environment,
  logger: Logger,
  as?: 'service' | 'command',
): void {
  const redact = redactorFor(environment);
  app.use(
    app.get(Connections).sequentially,
    assignRequestContext(redact),
    app.get(RequestObserver).observe(logger, redact, as),
    securityHeaders,
  );
  app.use(DOCS_PAGE, docsHeaders);
  // Before the checks of paths and methods, because a preflight is OPTIONS.
  if (environment.CORS_ORIGINS) allowOrigins(app, environment.CORS_ORIGINS);
  app.use(rejectRepeatedHeaders, rejectUndecodablePath, app.get(ShutdownState).refuse, app.get(Routes).refuseHead);
  serveDocument(app);
}

/** Only what everybody may reach is available to pages of other origins. */
function allowOrigins(app: NestExpressApplication, origins: readonly string[]): void {
  const routes = app.get(Routes);
  const cors = {
    origin: origins.includes('*') ? '*' : [...origins],
    methods: routes.publicMethods,
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  };
  app.enableCors(({ path }: Request, decide: (error: null, options: object) => void) => {
    decide(null, routes.audience(path) === 'public' ? cors : { origin: false });
  });
}

/**
 * Shuts the service down: readiness fails, no new connections are accepted, requests are refused, background work stops,
 * running calls end and are settled, then everything is closed. Calls that still run after the grace period are aborted, and settled as well.
 *
 * @param times.graceSeconds from the start until running calls are aborted; includes the delay
 * @param times.delaySeconds how long requests are still served while readiness fails
 */
export async function shutDown(
  app: NestExpressApplication,
  { graceSeconds, delaySeconds = 0 }: { graceSeconds: number; delaySeconds?: number },
): Promise<void> {
  const state = app.get(ShutdownState);
  state.stopping = true;
  const graceEndsAtMs = performance.now() + graceSeconds * 1000;
  if (delaySeconds > 0) await sleep(Math.min(delaySeconds, graceSeconds) * 1000);
  const remainingMs = Math.max(0, graceEndsAtMs - performance.now());
  await Promise.all([
    app.get(Connections).close(app.getHttpServer(), remainingMs, () => (state.refusing = true)),
    ...state.servers.map((server) => server.close(remainingMs)),
    app.get(BackgroundLoops).stop(),
  ]);
  await withTimeout(app.get(TranscriptsService).idle(), graceEndsAtMs + LAST_SETTLEMENTS_MS - performance.now());
  await app.close();
}
