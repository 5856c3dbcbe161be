import type { Environment } from '../../config/environment.js';
import { redactApiKeys } from '../../domain/api-key-text.js';

/** Removes secrets from a text that is sent to a caller or logged. */
export type Redactor = (text: string) => string;

/** Redacts API keys and the secrets of a configuration; callers send them in the wrong place by mistake. */
export function redactorFor(environment: Environment): Redactor {
  const { ADMIN_TOKEN, METRICS_TOKEN, WEBHOOK_SECRET_KEY = [] } = environment;
  return createRedactor(ADMIN_TOKEN, METRICS_TOKEN, ...WEBHOOK_SECRET_KEY);
}

/** The user and password of a URL: of a proxy, a database, Redis or NATS. */
const CREDENTIALS = /:\/\/[^\s/?#"]+@/g;

/** @param tokens secrets to redact besides API keys, webhook secrets and credentials in URLs; undefined ones are ignored */
export function createRedactor(...tokens: (string | undefined)[]): Redactor {
  const hidden = tokens.flatMap((token) =>
    // JSON escapes quotes and backslashes.
    token === undefined ? [] : [token, JSON.stringify(token).slice(1, -1)],
  );
  return (text) =>
    hidden.reduce((rest, token) => rest.replaceAll(token, '…'), redactApiKeys(text).replace(CREDENTIALS, '://…@'));
}

/** Control, format and separator characters, which change or hide what a terminal displays; line feeds are excluded. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]|[^\P{Cc}\n]/gu;

/**
 * Escapes invisible characters as JSON does (`\u202e`), so that a terminal displays a log line as it is. In a line of
 * JSON they occur only within strings, whose value does not change.
 */
export function escapeInvisible(line: string): string {
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return line.replace(INVISIBLE, (character) => character.split('').map(escaped).join(''));
}
