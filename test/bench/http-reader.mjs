import { connect } from 'node:net';

/*
 * A reader that costs as little as it can, since it shares the machine with what it measures: it looks for the end of
 * each response and for nothing else, and its buffer is reused.
 */
const BUFFER_BYTES = 256 * 1024;
const CHUNKED_END = '0\r\n\r\n';

/** One connection on which one request after another is made. */
class Connection {
  #port;
  #request;
  #socket;
  #answer;

  constructor(port, path, headers) {
    this.#port = port;
    const lines = Object.entries({ Host: `127.0.0.1:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}`);
    this.#request = `GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
  }

  /** Resolves with the status when the response is complete. */
  get() {
    return new Promise((resolve, reject) => {
      this.#answer = { resolve, reject, bytes: 0, head: '', status: 0, isLast: false, tail: '' };
      this.#socket ??= this.#connect();
      this.#socket.write(this.#request);
    });
  }

  close() {
    this.#socket?.destroy();
  }

  #connect() {
    const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
    const fail = (error) => this.#answer?.reject(error ?? new Error('The connection was closed during the response'));
    const onread = { buffer, callback: (length) => this.#read(buffer, length) };
    return connect({ host: '127.0.0.1', port: this.#port, noDelay: true, onread })
      .once('error', fail)
      .once('close', () => fail());
  }

  #read(buffer, length) {
    const answer = this.#answer;
    if (!answer) return true;
    const from = answer.status === 0 ? this.#readHead(answer, buffer, length) : 0;
    if (from < 0) return true;
    answer.bytes += length - from;
    answer.tail = (answer.tail + buffer.latin1Slice(Math.max(from, length - 5), length)).slice(-5);
    const isComplete = answer.isChunked ? answer.tail === CHUNKED_END : answer.bytes >= answer.bodyLength;
    if (!isComplete) return true;
    this.#answer = undefined;
    if (answer.isLast) {
      this.#socket.removeAllListeners('close').destroy();
      this.#socket = undefined;
    }
    answer.resolve(answer.status);
    return true;
  }

  /** Where the body begins; negative while the head is not whole. */
  #readHead(answer, buffer, length) {
    const before = answer.head.length;
    answer.head += buffer.latin1Slice(0, length);
    const end = answer.head.indexOf('\r\n\r\n');
    if (end < 0) return -1;
    const head = answer.head.slice(0, end + 2);
    answer.status = Number(head.slice(9, 12));
    // As the service says after some number of requests.
    answer.isLast = /\r\nconnection: close\r\n/i.test(head);
    const [, given] = /\r\ncontent-length: (\d+)/i.exec(head) ?? [];
    answer.isChunked = given === undefined;
    answer.bodyLength = Number(given);
    return end + 4 - before;
  }
}

/** Asks for the same thing over and over on some connections, and counts. */
export async function load({ port, path, headers, connections, seconds }) {
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  let responses = 0;
  const work = async () => {
    const connection = new Connection(port, path, headers);
    for (; performance.now() < until; responses += 1) {
      const status = await connection.get();
      if (status !== 200) throw new Error(`${path} returned ${status}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  return { responses, perSecond: (responses * 1000) / (performance.now() - startedAt) };
}
