import type { RandomSource } from '../../harness/random.js';
import { frameOf } from './caller.js';

const PATTERN = 'channels.transcripts';
const KILOBYTE = 1024;

const framed = (text: string): string => `${text.length}#${text}`;

/** Hostile bytes, as complete frames or none; none of them waits for more bytes. */
export const HOSTILE_FRAMES: Readonly<Record<string, (random: RandomSource) => string | Buffer>> = {
  'random bytes': (random) => Buffer.concat([Buffer.from('x'), random.bytes(1 + random.below(500))]),
  'an HTTP request': () => 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
  'a bad length': (random) => `${random.pick(['-1', '1e9', '0x10', ' 5', '', '٣', '1.5', 'NaN', '+3'])}#{}`,
  'a length without end': (random) => '9'.repeat(7 + random.below(5_000)),
  'a frame of 64 KB and a byte': () => `${64 * KILOBYTE + 1}#`,
  'no JSON': (random) => framed(random.text(1 + random.below(200), '{}[]",:0123456789ab')),
  'JSON that is not a message': (random) =>
    framed(random.pick(['1', 'null', '[]', '{}', '"a"', 'true', '[{"id":"1"}]'])),
  'the same a thousand times': () => '1#1'.repeat(1_000),
  'bytes that are not UTF-8': (random) =>
    Buffer.concat([
      Buffer.from('3#'),
      Buffer.from(random.pick([[0x80], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xff]])),
      Buffer.from('{}{}'),
    ]),
  'a split surrogate pair': () => '1#😀',
  'an id of any type': (random) =>
    frameOf({
      id: random.pick([1, null, {}, [], true, 'x'.repeat(10_000), '\u0000'.repeat(128)]),
      pattern: PATTERN,
      data: {},
    }),
  'a pattern of any type': (random) =>
    frameOf({
      id: 'a',
      pattern: random.pick([1, null, {}, { cmd: 'x' }, [PATTERN], '', '__proto__', 'constructor']),
      data: 1,
    }),
  'a pattern of JSON nested deep': (random) =>
    frameOf({ id: 'a', pattern: '['.repeat(1 + random.below(60_000)), data: 1 }),
  'JSON nested deep': (random) => {
    const depth = 1 + random.below(20_000);
    return framed(`{"id":"a","pattern":"${PATTERN}","data":${'['.repeat(depth)}${']'.repeat(depth)}}`);
  },
  'metadata of any type': (random) =>
    frameOf({
      id: 'a',
      pattern: PATTERN,
      data: {},
      metadata: random.pick([1, 'x', [], null, true, { traceparent: {} }]),
    }),
  'random trace headers': (random) =>
    frameOf({
      id: 'a',
      pattern: PATTERN,
      data: {},
      metadata: { traceparent: random.text(60), tracestate: random.text(600) },
    }),
  'fields of any type': (random) =>
    frameOf({
      id: 'a',
      pattern: PATTERN,
      data: Object.fromEntries(
        ['apiKey', 'id', 'limit', 'languages', 'requestId', random.text(5)].map((name) => [
          name,
          random.pick([
            1,
            -1,
            1e308,
            null,
            true,
            '',
            [],
            {},
            [[[1]]],
            'x'.repeat(3_000),
            '\u202e\u0000\r\n',
            `ctk_${random.text(50)}`,
          ]),
        ]),
      ),
    }),
  'names of prototypes': () =>
    framed(`{"id":"a","pattern":"${PATTERN}","__proto__":{"x":1},"data":{"__proto__":{"apiKey":"x"},"constructor":1}}`),
  'an event of an unknown pattern': (random) => frameOf({ pattern: random.text(60), data: 1 }),
  'an event': () => frameOf({ pattern: PATTERN, data: {} }),
};
