import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { UpstreamResponse } from '../egress/upstream-response.js';
import { CONFIGURED, type VersionForm } from './clients.js';
import { readPublishedVersion, WebVersion } from './web-version.js';

Logger.overrideLogger(false);

const OK: UpstreamResponse = { kind: 'ok', media: 'json', body: '{}', json: {} };
const REFUSED: UpstreamResponse = { kind: 'http-error', status: 400, media: 'json' };
const UNSERVED = { kind: 'unreadable', expected: 'a version of WEB that the platform serves' };
const BLOCKED = { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null } as const;
const CURRENT = '2.20261120.01.00';

beforeEach(() => {
  jest.useFakeTimers({ now: Date.UTC(2026, 10, 28) });
});
afterEach(() => {
  jest.useRealTimers();
});

const page = (version: unknown, other: unknown = null) => {
  const facts = [...Array<null>(16).fill(null), version, other];
  return `)]}'\n${JSON.stringify([['a', null, [[facts], 'key']]])}`;
};

/** What an experiment finds out, and what it sent. */
function experiments(served: (form: VersionForm) => UpstreamResponse, published: string | null = page(CURRENT)) {
  const web = new WebVersion();
  const sent: string[] = [];
  const probes = {
    control: (form: VersionForm) => {
      sent.push(form.headers ? (form.version ?? 'configured') : 'without headers');
      return Promise.resolve(served(form));
    },
    published: () => {
      sent.push('sw.js_data');
      return Promise.resolve(published);
    },
  };
  /** As a request that was sent a moment ago and got 400. */
  const examine = (form = web.form, sentAtMs = performance.now() + 1) => web.examine(form, sentAtMs, probes);
  return { web, sent, examine };
}

describe('a request that gets 400', () => {
  it('concerns its subject when a control is served, or another request that was sent with it', async () => {
    const { web, sent, examine } = experiments(() => OK);
    expect(await examine()).toBe('served');
    expect([sent, web.retired]).toEqual([['configured'], false]);
    const sentAtMs = performance.now();
    web.served(CONFIGURED);
    expect(await examine(CONFIGURED, sentAtMs)).toBe('served');
    expect(sent).toHaveLength(1);
  });

  it('has a retired version when a control is served without its headers, and the current one is sent from then on', async () => {
    const { web, sent, examine } = experiments(({ version, headers }) => (headers && version === null ? REFUSED : OK));
    expect(await Promise.all([examine(), examine()])).toEqual(['replaced', 'replaced']);
    expect(sent).toEqual(['configured', 'without headers', 'sw.js_data', CURRENT]);
    expect([web.retired, web.form]).toEqual([true, { version: CURRENT, headers: true }]);
    // Those that were sent before.
    expect(await examine(CONFIGURED)).toBe('replaced');
    expect(sent).toHaveLength(4);
  });

  it('has a retired version when only the current one is served', async () => {
    const { web, examine } = experiments(({ version }) => (version === null ? REFUSED : OK));
    expect([await examine(), web.form.version]).toEqual(['replaced', CURRENT]);
  });

  it('is sent without the headers when no current version is known or served', async () => {
    for (const published of [null, 'a page', page('1.0')]) {
      const { web, examine } = experiments(({ headers }) => (headers ? REFUSED : OK), published);
      expect([await examine(), web.retired, web.form]).toEqual(['replaced', true, { version: null, headers: false }]);
    }
    const { web, examine } = experiments(({ headers }) => (headers ? REFUSED : OK));
    expect([await examine(), web.form.headers]).toEqual(['replaced', false]);
  });

  it('says nothing when every version is refused: for a minute without a control, for an hour without /sw.js_data', async () => {
    const { web, sent, examine } = experiments(() => REFUSED);
    for (let times = 0; times < 3; times += 1) expect(await examine()).toEqual(UNSERVED);
    expect(sent.splice(0)).toEqual(['configured', 'without headers', 'sw.js_data', CURRENT]);
    jest.advanceTimersByTime(60_000);
    expect(await examine()).toEqual(UNSERVED);
    expect(sent.splice(0)).toEqual(['configured', 'without headers', CURRENT]);
    jest.advanceTimersByTime(3_540_000);
    await examine();
    expect(sent).toContain('sw.js_data');
    expect([web.retired, web.form]).toEqual([false, CONFIGURED]);
  });

  it.each<UpstreamResponse>([
    BLOCKED,
    { kind: 'timeout' },
    { kind: 'http-error', status: 500, media: 'html' },
    { kind: 'http-error', status: 400, media: 'html' },
  ])('ends as its control does: %j', async (response) => {
    const { sent, examine } = experiments(() => response);
    expect(await examine()).toEqual(response);
    expect(sent).toEqual(['configured']);
  });
});

describe('the version that the platform states', () => {
  it.each<[string, unknown]>([
    ['in its place', page(CURRENT)],
    ['in its place, whatever else is there', page(CURRENT, '2.20261119.05.00')],
    ['elsewhere', page(null, CURRENT)],
    ['in a text that is no JSON', `)]}'\n[["\\"clientVersion\\":\\"${CURRENT}\\""`],
    ['beside one that is not plausible', page('2.99991231.00.00', CURRENT)],
  ])('is read %s', (_, text) => {
    expect(readPublishedVersion(String(text))).toBe(CURRENT);
  });

  it.each(['', '{}', '<html>', page('2.20261399.01.00'), page('2.20190101.01.00'), page('1.20261120.01.00'), page(7)])(
    'is not read from %j',
    (text) => {
      expect(readPublishedVersion(text)).toBeNull();
    },
  );
});
