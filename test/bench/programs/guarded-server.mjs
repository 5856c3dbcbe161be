/*
 * A bare node:http server that does the guards' work before each response: it looks up the API key, counts the call for the
 * rate limit and reads the quota, with the service's own statements, and then writes a file's bytes from memory, compressed
 * in advance for callers that accept gzip. It has no framework, no validation, no log and no metrics. With `limit=1` it
 * writes the first video of the file alone.
 */
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { hashKey, isWellFormedKey } from '../../../dist/modules/organizations/api-key.js';
import { AUTHENTICATE } from '../../../dist/modules/organizations/api-keys.service.js';
import { QUOTA_STATE } from '../../../dist/modules/quota/quota-state.js';
import { CallRate } from '../../../dist/modules/rate-limit/call-rate.js';

const RATE_MAX = 1e9;

const whole = readFileSync(process.env.BODY_FILE);
const { channel, results } = JSON.parse(whole);
const one = Buffer.from(JSON.stringify({ channel, results: results.slice(0, 1) }));
const bodies = new Map([whole, one].map((plain, index) => [index === 1, { plain, gzip: gzipSync(plain) }]));
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const calls = new CallRate({ RATE_LIMIT_PER_MINUTE: RATE_MAX }, null);

async function guard(request) {
  const key = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (key === undefined || !isWellFormedKey(key)) return undefined;
  const [caller] = (await pool.query(AUTHENTICATE, [hashKey(key)])).rows;
  const rate = caller && (await calls.count({ keyId: caller.key_id, organization: caller }));
  if (!rate || rate.used > rate.limit) return undefined;
  const [usage] = (await pool.query(QUOTA_STATE, [caller.id, 50, 5_000, null])).rows;
  return usage;
}

createServer(async (request, response) => {
  if (request.url === '/health/ready') return response.end('{}');
  const usage = await guard(request);
  if (!usage) return response.writeHead(401).end();
  const gzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  const bytes = bodies.get(/[?&]limit=1(?:&|$)/.test(request.url))[gzip ? 'gzip' : 'plain'];
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    'X-Quota-Limit': usage.limit_in_force,
    'X-Quota-Used': usage.used_count,
    ...(gzip && { 'Content-Encoding': 'gzip' }),
  });
  response.end(bytes);
}).listen(Number(process.env.PORT), '127.0.0.1');
