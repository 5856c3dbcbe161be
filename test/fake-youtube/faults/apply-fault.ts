import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { botCheckResponse } from '../calls/playability.js';
import { hostileCaptions } from '../caption-formats/hostile.js';
import type { Incoming } from '../incoming-request.js';
import { send, sendText } from '../send.js';
import type { RenderedBody } from '../rendered-bodies.js';
import type { Fault } from './fault-registry.js';
import { CAPTCHA_PAGE, CONSENT_PAGE } from './pages.js';

const HTML = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=UTF-8';
const DRIP_MS = 50;
const HUGE_CHUNK = Buffer.alloc(65_536, ' ');

/**
 * Answers a request in the way of a fault.
 *
 * @param answer what the answer would have been
 * @param closed aborted when the connection is gone
 */
export async function actOut(
  fault: Fault,
  incoming: Incoming,
  answer: RenderedBody,
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
      return cut(answer, response);
    case 'half-closed':
      return halfClose(answer, response);
    case 'hang':
      return;
    case 'empty':
      return sendText(response, 200, answer.contentType, '');
    case 'captcha':
      return sendText(response, 200, HTML, CAPTCHA_PAGE);
    case 'consent':
      return sendText(response, 200, HTML, CONSENT_PAGE);
    case 'bot-check':
      return sendText(response, 200, JSON_TYPE, botCheckText(incoming));
    case 'truncated':
      return send(response, { ...asIs(answer), bytes: half(plain(answer)) });
    case 'wrong-charset':
      return send(response, { ...asIs(answer), bytes: Buffer.from(plain(answer).toString(), 'utf16le') });
    case 'not-json':
      return sendText(response, 200, answer.contentType, 'Sorry, something went wrong.');
    case 'slow-drip':
      return drip(answer, response, closed);
    case 'huge':
      return flood(answer, response);
    case 'redirect':
      response.setHeader('Location', fault.location ?? '/fake-youtube/elsewhere');
      return sendText(response, 302, HTML, '');
    case 'hostile-captions':
      return sendText(response, 200, answer.contentType, hostileCaptions(incoming.url.searchParams.get('fmt') ?? ''));
  }
}

function botCheckText(incoming: Incoming): string {
  const check = botCheckResponse();
  return JSON.stringify(incoming.kind === 'reel' ? { playerResponse: check } : check);
}

function plain(answer: RenderedBody): Buffer {
  return answer.encoding === 'gzip' ? gunzipSync(answer.bytes) : answer.bytes;
}

function asIs(answer: RenderedBody): RenderedBody {
  return { ...answer, encoding: 'identity' };
}

function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}

/** Announces the whole body, sends half of it, and breaks the connection. */
function cut(answer: RenderedBody, response: ServerResponse): void {
  const bytes = plain(answer);
  response.writeHead(answer.status, { 'Content-Type': answer.contentType, 'Content-Length': bytes.length + 1 });
  response.write(half(bytes), () => response.socket?.resetAndDestroy());
}

/** Announces the whole body, sends half of it, and closes its own side in good order, as if that were all. */
function halfClose(answer: RenderedBody, response: ServerResponse): void {
  const bytes = plain(answer);
  response.writeHead(answer.status, { 'Content-Type': answer.contentType, 'Content-Length': bytes.length + 1 });
  response.write(half(bytes), () => response.socket?.end());
}

async function drip(answer: RenderedBody, response: ServerResponse, closed: AbortSignal): Promise<void> {
  const bytes = plain(answer);
  response.writeHead(answer.status, { 'Content-Type': answer.contentType, 'Content-Length': bytes.length });
  for (const byte of bytes) {
    response.write(Buffer.of(byte));
    await sleep(DRIP_MS, undefined, { signal: closed });
  }
  response.end();
}

/** A body without end, sent as fast as it is read. */
function flood(answer: RenderedBody, response: ServerResponse): void {
  response.writeHead(answer.status, { 'Content-Type': answer.contentType });
  const pour = (): void => {
    while (!response.destroyed && response.write(HUGE_CHUNK));
  };
  response.on('drain', pour);
  pour();
}
