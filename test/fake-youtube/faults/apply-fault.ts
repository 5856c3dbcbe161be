import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { botCheck } from '../calls/playability.js';
import { refusalResponse } from '../calls/player.js';
import { hostileCaptions } from '../caption-formats/hostile.js';
import type { Incoming } from '../incoming-request.js';
import type { JsonObject } from '../json.js';
import { type RenderedBody, send, sendText } from '../rendered-bodies.js';
import type { ServerState } from '../settings.js';
import type { Fault } from './fault-registry.js';
import { CAPTCHA_PAGE, CONSENT_PAGE, NOT_FOUND_PAGE, REFUSING_PAGES, REFUSING_PLAYABILITIES } from './refusals.js';

const HTML = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=UTF-8';
const RETIRED = JSON.stringify({
  error: {
    code: 400,
    message: 'Precondition check failed.',
    errors: [{ message: 'Precondition check failed.', domain: 'global', reason: 'failedPrecondition' }],
    status: 'FAILED_PRECONDITION',
  },
});
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
  switch (fault.kind) {
    case '429':
      return sendText(response, 429, HTML, '<!DOCTYPE html><title>429</title><p>Too many requests.');
    case '429-retry-after':
      response.setHeader('Retry-After', fault.retryAfterSeconds ?? 1);
      return sendText(response, 429, HTML, '<!DOCTYPE html><title>429</title><p>Too many requests.');
    case '500':
      return sendText(
        response,
        500,
        JSON_TYPE,
        '{"error":{"code":500,"message":"Internal error encountered.","status":"INTERNAL"}}',
      );
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'cut':
      return cut(rendered, response);
    case 'half-closed':
      return halfClose(rendered, response);
    case 'hang':
      return;
    case 'empty':
      return sendText(response, 200, rendered.contentType, '');
    case 'captcha':
      return sendText(response, 200, HTML, CAPTCHA_PAGE);
    case 'consent':
      return sendText(response, 200, HTML, CONSENT_PAGE);
    case 'bot-check':
      return sendText(response, 200, JSON_TYPE, botCheckText(incoming));
    case 'bot-check-renewed':
    case 'reload':
    case 'reload-screen':
    case 'retired-reason':
    case 'retired-subreason':
    case 'retired-screen':
      return sendRefusal(REFUSING_PLAYABILITIES[fault.kind], incoming, state, response);
    case 'player-captcha': {
      const playability = REFUSING_PLAYABILITIES[fault.kind];
      const status = fault.playability ?? playability.status;
      return sendRefusal({ ...playability, status }, incoming, state, response);
    }
    case 'retired':
      return sendText(response, 400, JSON_TYPE, RETIRED);
    case 'token-enforced':
      return sendText(response, 200, HTML, '');
    case 'feed-unavailable':
      return sendText(response, 404, HTML, NOT_FOUND_PAGE);
    case 'sorry-200':
    case 'sorry-403':
    case 'sorry-503':
    case 'forbidden': {
      const { status, page } = REFUSING_PAGES[fault.kind];
      return sendText(response, status, HTML, page);
    }
    case 'truncated':
      return send(response, { ...uncompressed(rendered), bytes: half(uncompressedBytes(rendered)) });
    case 'wrong-charset':
      return send(response, {
        ...uncompressed(rendered),
        bytes: Buffer.from(uncompressedBytes(rendered).toString(), 'utf16le'),
      });
    case 'not-json':
      return sendText(response, 200, rendered.contentType, 'Sorry, something went wrong.');
    case 'slow-drip':
      return drip(rendered, response, closed);
    case 'huge':
      return flood(rendered, response);
    case 'redirect':
      response.setHeader('Location', fault.location ?? '/fake-youtube/elsewhere');
      return sendText(response, 302, HTML, '');
    case 'hostile-captions':
      return sendText(response, 200, rendered.contentType, hostileCaptions(incoming.url.searchParams.get('fmt') ?? ''));
  }
}

function sendRefusal(playability: JsonObject, incoming: Incoming, state: ServerState, response: ServerResponse): void {
  sendText(response, 200, JSON_TYPE, JSON.stringify(refusalResponse(playability, incoming, state)));
}

/** A bot check that brings no visitor data. */
function botCheckText(incoming: Incoming): string {
  const check = { playabilityStatus: botCheck() };
  return JSON.stringify(incoming.kind === 'reel' ? { playerResponse: check } : check);
}

function uncompressedBytes(rendered: RenderedBody): Buffer {
  return rendered.encoding === 'gzip' ? gunzipSync(rendered.bytes) : rendered.bytes;
}

function uncompressed(rendered: RenderedBody): RenderedBody {
  return { ...rendered, encoding: 'identity' };
}

function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}

/** Announces the whole body, sends half of it, and breaks the connection. */
function cut(rendered: RenderedBody, response: ServerResponse): void {
  const bytes = uncompressedBytes(rendered);
  response.writeHead(rendered.status, { 'Content-Type': rendered.contentType, 'Content-Length': bytes.length + 1 });
  response.write(half(bytes), () => response.socket?.resetAndDestroy());
}

/** Announces the whole body, sends half of it, and closes its side of the connection cleanly. */
function halfClose(rendered: RenderedBody, response: ServerResponse): void {
  const bytes = uncompressedBytes(rendered);
  response.writeHead(rendered.status, { 'Content-Type': rendered.contentType, 'Content-Length': bytes.length + 1 });
  response.write(half(bytes), () => response.socket?.end());
}

async function drip(rendered: RenderedBody, response: ServerResponse, closed: AbortSignal): Promise<void> {
  const bytes = uncompressedBytes(rendered);
  response.writeHead(rendered.status, { 'Content-Type': rendered.contentType, 'Content-Length': bytes.length });
  for (const byte of bytes) {
    response.write(Buffer.of(byte));
    await sleep(DRIP_MS, undefined, { signal: closed });
  }
  response.end();
}

/** An endless body, sent as fast as the client reads. */
function flood(rendered: RenderedBody, response: ServerResponse): void {
  response.writeHead(rendered.status, { 'Content-Type': rendered.contentType });
  const fill = (): void => {
    while (!response.destroyed && response.write(HUGE_CHUNK));
  };
  response.on('drain', fill);
  fill();
}
