import type { Client } from './catalogue/model.js';
import type { Json } from './json.js';

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  /** Null when the body is not JSON. */
  json: Json;
}

/** Sends a request as an InnerTube client does; for specs. */
export async function postInnertube(
  baseUrl: string,
  path: string,
  body: object,
  client: Client = 'WEB',
): Promise<Reply> {
  return request(`${baseUrl}/youtubei/v1/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ context: { client: { clientName: client } }, ...body }),
  });
}

export async function request(url: string, init?: RequestInit): Promise<Reply> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parsed(text) };
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
