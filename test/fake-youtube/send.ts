import type { ServerResponse } from 'node:http';
import type { RenderedBody } from './rendered-bodies.js';

export function send(response: ServerResponse, { status, contentType, encoding, bytes }: RenderedBody): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': bytes.length,
    Vary: 'Accept-Encoding',
    'Cache-Control': 'private',
    ...(encoding === 'gzip' && { 'Content-Encoding': 'gzip' }),
  });
  response.end(bytes);
}

export function sendText(response: ServerResponse, status: number, contentType: string, text: string): void {
  send(response, { status, contentType, encoding: 'identity', bytes: Buffer.from(text) });
}
