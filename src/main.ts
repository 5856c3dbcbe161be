import 'reflect-metadata';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import { EnvironmentError, environmentWarnings, readEnvironment, type Environment } from './config/environment.js';
import { createApp, shutDown } from './bootstrap.js';
import { escapeInvisible, redactorFor } from './observability/logging/logger.js';
import { createLogger, standardOutput } from './observability/logging/logger.js';
import { OrganizationsService } from './organizations/organizations.service.js';
import { CallsInFlight } from './rate-limit/calls-in-flight.js';

async function start(): Promise<void> {
  // During the start no call is running that would have to finish.
  const exit = (): never => process.exit(0);
  process.on('SIGTERM', exit).on('SIGINT', exit);
  const environment = readEnvironment();
  const logger = createLogger(environment.LOG_LEVEL, standardOutput(), redactorFor(environment));
  for (const message of environmentWarnings(environment)) logger.warn({ event: 'configuration', message });
  const stopTracing = await loadTracing(environment, logger);
  const app = await createApp(environment, logger);
  try {
    await app.listen(environment.PORT, environment.HOST);
  } catch (error) {
    await app.close();
    throw error;
  }
  process.off('SIGTERM', exit).off('SIGINT', exit);
  stopOnSignals(app, environment, logger, stopTracing);
  logger.info({ event: 'listening', url: await app.getUrl() });
  await logMissingOrganization(app, logger);
}

/** Logs how to create the first organization. A failed query does not end the process, which already serves calls. */
async function logMissingOrganization(app: NestExpressApplication, logger: Logger): Promise<void> {
  const organizations = app.get(OrganizationsService);
  if (!(await organizations.isEmpty().catch(() => false))) return;
  logger.info({
    event: 'no_organization',
    message: 'No organization exists. Create one with: npm run cli -- org create --name "My team" --plan pro',
  });
}

/** Loads the OpenTelemetry SDK only when tracing is configured; resolves to a function that exports the last spans. */
async function loadTracing(environment: Environment, logger: Logger): Promise<() => Promise<void>> {
  if (environment.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return () => Promise.resolve();
  const { startTracing } = await import('./observability/tracing/open-telemetry.js');
  return startTracing((cause) => logger.warn({ event: 'traces_not_sent', cause }));
}

function stopOnSignals(
  app: NestExpressApplication,
  environment: Environment,
  logger: Logger,
  stopTracing: () => Promise<void>,
): void {
  const { SHUTDOWN_GRACE_SECONDS: graceSeconds, SHUTDOWN_DELAY_SECONDS: delaySeconds } = environment;
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    // npm passes on a Ctrl-C that the terminal has sent already.
    if (stopping) return;
    stopping = true;
    logger.info({
      event: 'stopping',
      ...{ signal, callsInFlight: app.get(CallsInFlight).count },
      message: `Requests are served for ${delaySeconds} s more; running calls may end within ${graceSeconds} s.`,
    });
    shutDown(app, { graceSeconds, delaySeconds })
      .then(stopTracing)
      .then(() => process.exit(0), fail);
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
}

/** Prints why the start failed, one line per fault and no stack. */
function fail(error: unknown): never {
  for (const line of reasons(error)) process.stderr.write(`channel-transcripts: ${escapeInvisible(line)}\n`);
  process.exit(1);
}

function reasons(error: unknown): readonly string[] {
  if (error instanceof EnvironmentError) return error.faults;
  if (!(error instanceof Error)) return [String(error)];
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return [`${message}: the port is in use. Stop the process that uses it, or set PORT.`];
  if (code === 'EACCES' && message.startsWith('listen')) return [`${message}: choose a PORT of 1024 or more.`];
  return [message.split('\n', 1)[0] ?? message];
}

start().catch(fail);
