/* A bare node:http server that writes a file's bytes from memory, compressed beforehand for callers that accept gzip. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

const body = readFileSync(process.env.BODY_FILE);
const packed = gzipSync(body);

createServer((request, response) => {
  const gzip = request.url !== '/health/ready' && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  const bytes = request.url === '/health/ready' ? Buffer.from('{}') : gzip ? packed : body;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    ...(gzip && { 'Content-Encoding': 'gzip' }),
  });
  response.end(bytes);
}).listen(Number(process.env.PORT), '127.0.0.1');
