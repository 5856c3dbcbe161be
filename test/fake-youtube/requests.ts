import type { Client } from './catalogue/model.js';
import { isJsonObject, type Json } from './json.js';

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

/** The value at a path such as `contents.tabs[0].title`; undefined when there is none. */
export function valueAt(json: Json, path: string): Json {
  return path.split(/[.[\]]+/).reduce<Json>((value, key) => {
    if (key === '') return value;
    if (Array.isArray(value)) return (value as readonly Json[])[Number(key)];
    return isJsonObject(value) ? value[key] : undefined;
  }, json);
}

/** Every value of a property of this name, at any depth, in order. */
export function valuesOf(json: Json, name: string): Json[] {
  if (Array.isArray(json)) return (json as readonly Json[]).flatMap((item) => valuesOf(item, name));
  if (!isJsonObject(json)) return [];
  return Object.entries(json).flatMap(([key, value]) => [...(key === name ? [value] : []), ...valuesOf(value, name)]);
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

/** The string at a path; empty when there is none. */
export function textAt(json: Json, path: string): string {
  const value = valueAt(json, path);
  return typeof value === 'string' ? value : '';
}
