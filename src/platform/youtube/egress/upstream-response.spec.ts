import { describe, expect, it, jest } from '@jest/globals';
import {
  classifyResponse,
  isHardRefusal,
  isUnreached,
  labelOf,
  readHtmlKind,
  readRetryAfter,
  type UpstreamResponse,
  withJson,
} from './upstream-response.js';

const CAPTCHA =
  '<!DOCTYPE html><html><body><form><div class="g-recaptcha" data-sitekey="x"></div></form></body></html>';
const CONSENT = '<html><body><form action="https://consent.youtube.com/s" method="POST"></form></body></html>';
const SORRY =
  "<html><title>Sorry...</title><h1>We're sorry...</h1><p>... but your computer or network may be sending automated queries.";
const NOW = Date.UTC(2026, 8, 1, 12, 0, 0);

describe('classify', () => {
  it('a consent page is a block with any content type', () => {
    for (const type of ['text/html; charset=utf-8', 'application/json', undefined]) {
      expect(classifyResponse(200, { 'content-type': type }, CONSENT)).toMatchObject({
        kind: 'blocked',
        reason: 'consent',
      });
    }
  });

  it.each([200, 403, 500, 503])('a refusal page is a block at status %i', (status) => {
    for (const [body, reason] of [
      [CAPTCHA, 'captcha'],
      [SORRY, 'automated-queries'],
    ] as const)
      expect(classifyResponse(status, { 'content-type': 'text/html' }, body, 'player')).toEqual({
        kind: 'blocked',
        reason,
        retryAfterSeconds: null,
      });
  });

  it.each([
    ['player', '{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}'],
    ['captions', ''],
    ['captions', '<html><title>403 Forbidden</title></html>'],
  ])('a 403 to a request for %s is a block: %s', (kind, body) => {
    const headers = { 'content-type': body.startsWith('{') ? 'application/json' : 'text/html' };
    expect(classifyResponse(403, headers, body, kind)).toMatchObject({ kind: 'blocked', reason: 'forbidden' });
    expect(classifyResponse(403, headers, body, 'uploads')).toMatchObject({ kind: 'blocked', reason: 'forbidden' });
    expect(classifyResponse(403, headers, body, 'feed')).toMatchObject({ kind: 'http-error', status: 403 });
  });

  it('any 429 is a block, with its Retry-After', () => {
    expect(classifyResponse(429, { 'content-type': 'application/json', 'retry-after': '7' }, '{}')).toEqual({
      kind: 'blocked',
      reason: 'too-many-requests',
      retryAfterSeconds: 7,
    });
  });

  it('classifies a 2xx response', () => {
    expect(classifyResponse(200, { 'content-type': 'application/json; charset=UTF-8' }, '{}')).toMatchObject({
      kind: 'ok',
      media: 'json',
    });
    expect(classifyResponse(200, { 'content-type': 'text/xml' }, '<transcript/>')).toMatchObject({
      kind: 'ok',
      media: 'xml',
    });
    expect(classifyResponse(200, { 'content-type': 'text/xml' }, ' \n ')).toMatchObject({ kind: 'ok', media: 'empty' });
    expect(classifyResponse(200, {}, '<!doctype HTML><p>')).toMatchObject({ kind: 'ok', media: 'html' });
  });

  it('another status is an error with that status', () => {
    expect(classifyResponse(404, { 'content-type': 'application/json' }, '{}')).toEqual({
      kind: 'http-error',
      status: 404,
      media: 'json',
    });
    expect(classifyResponse(503, { 'content-type': 'text/html' }, '<html>busy</html>')).toEqual({
      kind: 'http-error',
      status: 503,
      media: 'html',
    });
  });
});

describe('a response to a POST', () => {
  const whole = (body: string, media: 'json' | 'html' | 'empty' | 'other' = 'json'): UpstreamResponse => ({
    kind: 'ok',
    media,
    body,
  });

  it('is JSON, whatever its content type says', () => {
    expect(withJson(whole('{"a":[1]}', 'other'))).toMatchObject({ kind: 'ok', json: { a: [1] } });
  });

  it('that is empty is a refusal, and one that is cut short or no JSON is unreadable', () => {
    expect(withJson(whole('', 'empty'))).toMatchObject({ kind: 'blocked', reason: 'empty-body' });
    for (const body of ['{"a":', 'text']) expect(withJson(whole(body))).toMatchObject({ kind: 'unreadable' });
  });

  it('that is a page is not the platform’s', () => {
    expect(withJson(whole('<html><p>Please log in to this network.', 'html'))).toEqual({ kind: 'foreign-page' });
  });

  it('has up to 200 levels, of which none in a text counts', () => {
    const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`;
    expect(withJson(whole(nested(200)))).toMatchObject({ kind: 'ok' });
    expect(withJson(whole(nested(202)))).toMatchObject({ kind: 'unreadable', expected: 'JSON of at most 200 levels' });
    const inText = JSON.stringify({ text: `"\\${'[{'.repeat(500)}` });
    expect(withJson(whole(inText))).toMatchObject({ kind: 'ok' });
    // Levels that were closed do not count.
    expect(withJson(whole(`[${'[],'.repeat(500)}[]]`))).toMatchObject({ kind: 'ok' });
  });

  it('of millions of levels is unreadable without being parsed', () => {
    const parse = jest.spyOn(JSON, 'parse');
    expect(withJson(whole('['.repeat(15_000_000)))).toMatchObject({ kind: 'unreadable' });
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('that failed is passed on', () => {
    expect(withJson({ kind: 'timeout' })).toEqual({ kind: 'timeout' });
  });
});

describe('what a response says', () => {
  const blocked = (
    reason:
      'captcha' | 'consent' | 'too-many-requests' | 'automated-queries' | 'forbidden' | 'empty-body' | 'exit-shut',
  ) => ({ kind: 'blocked', reason, retryAfterSeconds: null }) as const;

  it('is for certain about the address for 429, the pages of the platform and what was not sent for these', () => {
    for (const reason of ['captcha', 'consent', 'too-many-requests', 'automated-queries', 'exit-shut'] as const)
      expect(isHardRefusal(blocked(reason))).toBe(true);
    for (const reason of ['forbidden', 'empty-body'] as const) expect(isHardRefusal(blocked(reason))).toBe(false);
  });

  it.each<[UpstreamResponse, boolean, string]>([
    [{ kind: 'network', cause: null }, true, 'network'],
    [{ kind: 'timeout' }, true, 'timeout'],
    [{ kind: 'foreign-page' }, true, 'unreadable'],
    [{ kind: 'http-error', status: 502, media: 'html' }, true, 'http-5xx'],
    [{ kind: 'http-error', status: 503, media: 'json' }, false, 'http-5xx'],
    [{ kind: 'unreadable', expected: 'whole JSON' }, false, 'unreadable'],
    [{ kind: 'busy', retryAfterSeconds: 1 }, false, 'busy'],
    [blocked('captcha'), false, 'blocked:captcha'],
    [{ kind: 'ok', media: 'empty', body: '' }, false, 'empty'],
    [{ kind: 'ok', media: 'html', body: '<html>' }, false, 'ok'],
  ])('of %j about reaching the platform is %s, with the label %s', (response, unreached, label) => {
    expect([isUnreached(response), labelOf(response)]).toEqual([unreached, label]);
  });
});

describe('Retry-After', () => {
  it('is read from seconds and from a date', () => {
    expect(readRetryAfter('120', NOW)).toBe(120);
    expect(readRetryAfter('Tue, 01 Sep 2026 12:00:30 GMT', NOW)).toBe(30);
  });

  it('is at least a second and at most an hour', () => {
    expect(readRetryAfter('0', NOW)).toBe(1);
    expect(readRetryAfter('Tue, 01 Sep 2026 11:00:00 GMT', NOW)).toBe(1);
    expect(readRetryAfter('86400', NOW)).toBe(3_600);
    expect(readRetryAfter('Thu, 01 Oct 2026 12:00:00 GMT', NOW)).toBe(3_600);
  });

  it('is a non-negative integer of seconds or null', () => {
    expect(['', '-1', '1.5', 'soon', '1e3'].map((text) => readRetryAfter(text, NOW))).toEqual(Array(5).fill(null));
  });
});

describe('an HTML page instead of an InnerTube response', () => {
  it.each([
    [
      'captcha',
      '<!DOCTYPE html><html><form action="/das_captcha?fw=1"><div class="g-recaptcha" data-sitekey="x"></div></form>',
    ],
    ['captcha', "<div  class='g-recaptcha'>"],
    ['captcha', '<form id="captcha-form" action="/sorry/index" method="post">'],
    ['consent', '<html><form action="https://consent.youtube.com/s" method="POST"><input type="hidden"></form>'],
    ['consent', '<form action="https://consent.google.com/save">'],
    ['automated-queries', SORRY],
    ['automated-queries', '<p>Our systems have detected unusual traffic from your computer network.'],
    ['other', '<html><style>.g-recaptcha { display: block }</style><p>503</p></html>'],
    ['other', '<a href="https://consent.youtube.com/s">privacy</a>'],
    ['other', ''],
  ])('is classified as %s', (kind, body) => {
    expect(readHtmlKind(body)).toBe(kind);
  });
});
