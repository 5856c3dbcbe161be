import { connect } from 'node:net';

/*
 * A reader that costs as little as it can, since it shares the machine with what it measures: it looks for the end of
 * each response and for nothing else, and its buffer is reused.
 */
const BUFFER_BYTES = 256 * 1024;
const CHUNKED_END = '0\r\n\r\n';

/** One connection on which one request after another is made. */
export class Connection {
  #request;
  #socket;
  #answer;

  constructor(port, path, headers = {}) {
    this.port = port;
    const lines = Object.entries({ Host: `127.0.0.1:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}`);
    this.#request = `GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
  }

  /** @param {{ onBytes?: (bytes: Buffer) => void }} options what to do with the bytes besides counting them */
  get({ onBytes } = {}) {
    return new Promise((resolve, reject) => {
      this.#answer = {
        resolve,
        reject,
        onBytes,
        bytes: 0,
        head: '',
        status: 0,
        isLast: false,
        bodyLength: -1,
        tail: '',
      };
      this.#socket ??= this.#connect();
      this.#socket.write(this.#request);
    });
  }

  pause(pauseMs) {
    this.#socket?.pause();
    setTimeout(() => this.#socket?.resume(), pauseMs);
  }

  close() {
    this.#socket?.destroy();
  }

  #connect() {
    const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
    const fail = (error) => this.#answer?.reject(error ?? new Error('The connection was closed during the response'));
    return connect({
      host: '127.0.0.1',
      port: this.port,
      noDelay: true,
      onread: { buffer, callback: (length) => this.#read(buffer, length) },
    })
      .once('error', fail)
      .once('close', () => fail());
  }

  #read(buffer, length) {
    const answer = this.#answer;
    if (!answer) return true;
    let from = 0;
    if (answer.status === 0) {
      from = this.#readHead(answer, buffer, length);
      if (from < 0) return true;
    }
    answer.bytes += length - from;
    answer.onBytes?.(buffer.subarray(from, length));
    const end = buffer.latin1Slice(Math.max(from, length - 5), length);
    answer.tail = (answer.tail + end).slice(-5);
    if (answer.bodyLength >= 0 ? answer.bytes >= answer.bodyLength : answer.tail === CHUNKED_END) {
      this.#answer = undefined;
      if (answer.isLast) {
        this.#socket.removeAllListeners('close').destroy();
        this.#socket = undefined;
      }
      answer.resolve({ status: answer.status, bytes: answer.bytes });
    }
    return true;
  }

  /** Where the body begins; negative while the head is not whole. */
  #readHead(answer, buffer, length) {
    const before = answer.head.length;
    answer.head += buffer.latin1Slice(0, length);
    const end = answer.head.indexOf('\r\n\r\n');
    if (end < 0) return -1;
    answer.status = Number(answer.head.slice(9, 12));
    // As the service says after some number of requests.
    answer.isLast = /\r\nconnection: close\r\n/i.test(answer.head.slice(0, end + 2));
    const given = /\r\ncontent-length: (\d+)/i.exec(answer.head.slice(0, end + 2))?.[1];
    answer.bodyLength = given === undefined ? -1 : Number(given);
    answer.head = '';
    return end + 4 - before;
  }
}

/** Reads one response completely and measures when its first entry arrived; the body includes its chunked framing. */
export async function readOnce(port, path, headers) {
  const connection = new Connection(port, path, { ...headers, Connection: 'close' });
  const parts = [];
  let firstEntryMs = null;
  const startedAt = performance.now();
  const { status, bytes } = await connection.get({
    onBytes: (part) => {
      parts.push(Buffer.from(part));
      if (firstEntryMs === null && part.includes('"videoId"')) firstEntryMs = performance.now() - startedAt;
    },
  });
  const ms = performance.now() - startedAt;
  connection.close();
  return { status, bytes, ms, firstEntryMs, raw: Buffer.concat(parts) };
}

/** Asks for the same thing over and over on some connections, and counts. */
export async function load({ port, path, headers, connections, seconds }) {
  const until = performance.now() + seconds * 1000;
  const startedAt = performance.now();
  const latencies = [];
  const work = async () => {
    const connection = new Connection(port, path, headers);
    while (performance.now() < until) {
      const askedAt = performance.now();
      const answer = await connection.get();
      if (answer.status !== 200) throw new Error(`${path} returned ${answer.status}`);
      latencies.push(performance.now() - askedAt);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  return { perSecond: latencies.length / elapsedSeconds, latencies };
}

/** Takes the chunked framing off a body. */
export function withoutChunks(raw) {
  const parts = [];
  let at = 0;
  for (;;) {
    const lineEnd = raw.indexOf('\r\n', at);
    const length = Number.parseInt(raw.latin1Slice(at, lineEnd), 16);
    if (!(length > 0)) return Buffer.concat(parts);
    parts.push(raw.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
}
