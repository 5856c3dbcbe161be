import type { DataSource, QueryRunner } from 'typeorm';
import { activeTracer, type Attributes } from '../observability/tracing/tracer.js';

/**
 * Shows every query of a data source in the trace of the call that it serves: its text, in which values are `$1`, `$2`
 * and so on, and never the values. Does nothing while nobody asked for traces.
 */
export function traceQueries(dataSource: DataSource, url: string): void {
  const tracer = activeTracer();
  if (!tracer) return;
  const { hostname, port, pathname, searchParams } = new URL(url);
  const server = {
    'db.system.name': 'postgresql',
    'db.namespace': decodeURIComponent(pathname.slice(1)),
    // The embedded database is reached through a directory.
    'server.address': searchParams.get('host') ?? hostname,
    'server.port': Number(searchParams.get('port') ?? (port || 5432)),
  };
  const createQueryRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => {
    const runner = createQueryRunner(mode);
    const query = runner.query.bind(runner);
    // Each overload of it: the parameters go through as they come.
    runner.query = ((text: string, ...rest: unknown[]) =>
      tracer.inSpan(
        'client',
        operationOf(text),
        queryAttributes(server, text),
        () => Reflect.apply(query, runner, [text, ...rest]) as Promise<unknown>,
      )) as QueryRunner['query'];
    return runner;
  };
}

function queryAttributes(server: Attributes, text: string): Attributes {
  return { ...server, 'db.operation.name': operationOf(text), 'db.query.text': text.replace(/\s+/g, ' ').trim() };
}

function operationOf(text: string): string {
  return /^\s*([A-Za-z]+)/.exec(text)?.[1]?.toUpperCase() ?? 'QUERY';
}
