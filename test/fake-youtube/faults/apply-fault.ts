import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { botCheck } from '../calls/playability.js';
import { refusalResponse } from '../calls/player.js';
import type { Incoming } from '../incoming-request.js';
import { type RenderedBody, send, sendText } from '../rendered-bodies.js';
import type { ServerState } from '../settings.js';
import { type Fault, type FaultKind, isPlayability } from './fault-registry.js';
import { PAGES, REFUSING_PLAYABILITIES } from './refusals.js';

const HTML = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=UTF-8';
const DRIP_MS = 50;
const HUGE_CHUNK = Buffer.alloc(65_536, ' ');

/**
 * Responds to a request with a fault.
 *
 * @param rendered the response without the fault
 * @param closed aborts when the connection closes before the response is complete
 */
export async function applyFault(
  fault: Fault,
  incoming: Incoming,
  state: ServerState,
  rendered: RenderedBody,
  response: ServerResponse,
  closed: AbortSignal,
): Promise<void> {
  const { kind } = fault;
  if (isPage(kind)) {
    if (kind === '429-retry-after') response.setHeader('Retry-After', fault.retryAfterSeconds ?? 1);
    if (kind === 'redirect') response.setHeader('Location', fault.location ?? '/fake-youtube/elsewhere');
    const { status, body } = PAGES[kind];
    if (typeof body === 'string') return sendText(response, status, HTML, body);
    return sendText(response, status, JSON_TYPE, JSON.stringify(body));
  }
  if (isPlayability(kind)) {
    const playability = REFUSING_PLAYABILITIES[kind];
    const refusal = { ...playability, status: fault.playability ?? playability.status };
    return sendText(response, 200, JSON_TYPE, JSON.stringify(refusalResponse(refusal, incoming, state)));
  }
  const { status, contentType } = rendered;
  const bytes = rendered.encoding === 'gzip' ? gunzipSync(rendered.bytes) : rendered.bytes;
  const half = bytes.subarray(0, Math.floor(bytes.length / 2));
  const altered = (changed: Buffer): void => send(response, { ...rendered, encoding: 'identity', bytes: changed });
  switch (kind) {
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'cut':
    case 'half-closed':
      // Announces the whole body, and sends half of it.
      response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': bytes.length + 1 });
      response.write(half, () => (kind === 'cut' ? response.socket?.resetAndDestroy() : response.socket?.end()));
      return;
    case 'hang':
      return;
    case 'empty':
      return sendText(response, 200, contentType, '');
    case 'bot-check':
      return sendText(response, 200, JSON_TYPE, botCheckText(incoming));
    case 'truncated':
      return altered(half);
    case 'wrong-charset':
      return altered(Buffer.from(bytes.toString(), 'utf16le'));
    case 'not-json':
      return sendText(response, 200, contentType, 'Sorry, something went wrong.');
    case 'slow-drip':
      response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': bytes.length });
      for (const byte of bytes) {
        response.write(Buffer.of(byte));
        await sleep(DRIP_MS, undefined, { signal: closed });
      }
      response.end();
      return;
    case 'huge':
      response.writeHead(status, { 'Content-Type': contentType });
      return flood(response);
  }
}

function isPage(kind: FaultKind): kind is keyof typeof PAGES {
  return Object.hasOwn(PAGES, kind);
}

/** A bot check that brings no visitor data. */
function botCheckText(incoming: Incoming): string {
  const check = { playabilityStatus: botCheck() };
  return JSON.stringify(incoming.kind === 'reel' ? { playerResponse: check } : check);
}

/** An endless body, sent as fast as the client reads. */
function flood(response: ServerResponse): void {
  const fill = (): void => {
    while (!response.destroyed && response.write(HUGE_CHUNK));
  };
  response.on('drain', fill);
  fill();
}
