import { setTimeout as sleep } from 'node:timers/promises';
import type { FakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import { send } from '../../harness/service.js';
import type { Deployment } from './deployment.js';

const CALLERS = 4;
const PAUSE_MS = 150;
/** Every so many calls one of MCP is sent as well. */
const MCP_EVERY = 5;
const UPSTREAM_LATENCY_MS = 30;

/**
 * Calls of every kind to all but the last replica until the signal, while YouTube fails a few requests, so that every
 * panel of the dashboard has something to show.
 */
export async function traffic(
  { services, fakeYoutube, service, customer }: Deployment,
  signal: AbortSignal,
): Promise<void> {
  failNowAndThen(fakeYoutube);
  const poor = await service.customer('pro', 0);
  const serving = services.slice(0, -1);
  const authorization = (key: string): Record<string, string> => ({ Authorization: `Bearer ${key}` });
  const own = authorization(customer.key);
  const cold = (calls: number): string => `/channels/@mixed-20x${1 + calls}/transcripts`;
  const kinds: readonly ((calls: number) => [path: string, headers: Record<string, string>])[] = [
    (calls) => [cold(calls), own],
    () => ['/channels/@tidewater/transcripts', own],
    () => ['/channels/@harbourlight/transcripts?limit=100', { ...own, 'Accept-Encoding': 'gzip' }],
    () => ['/channels/@bench-50x200/transcripts?limit=50', { ...own, Accept: 'application/x-ndjson' }],
    () => ['/channels/@tidewater/transcripts?limit=1', own],
    (calls) => [cold(calls), authorization(poor.key)],
    () => ['/usage', own],
    () => ['/usage', {}],
    () => ['/usage', authorization('ctk_unknown')],
    () => ['/channels/@sunkentrawler/transcripts', own],
    () => ['/health/ready', {}],
  ];
  let calls = 0;
  const caller = async (): Promise<void> => {
    while (!signal.aborted) {
      calls += 1;
      const [path, headers] = kinds[calls % kinds.length]?.(calls) ?? ['/', {}];
      const { url } = serving[calls % serving.length] ?? service;
      if (calls % MCP_EVERY === 0) await askForUsage(url, own);
      await send(url, 'GET', path, headers);
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** Calls a tool of MCP. */
async function askForUsage(url: string, key: Record<string, string>): Promise<void> {
  const headers = { ...key, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_usage', arguments: {} } };
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) });
  await response.text();
}

function failNowAndThen(fakeYoutube: FakeYoutube): void {
  fakeYoutube.set({ latencyMs: UPSTREAM_LATENCY_MS });
  fakeYoutube.setFaults(
    { kind: '500', rate: 0.03, match: { kind: ['player', 'timedtext'] } },
    { kind: 'bot-check', rate: 0.05, match: { client: 'VISIONOS' } },
    { kind: 'empty', rate: 0.03, match: { kind: 'timedtext' } },
  );
}
