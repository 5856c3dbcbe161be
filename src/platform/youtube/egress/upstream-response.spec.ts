import { describe, expect, it } from '@jest/globals';
import { classifyResponse, readHtmlKind, readRetryAfter } from './upstream-response.js';

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
        ...{ kind: 'blocked', reason, retryAfterSeconds: null },
      });
  });

  it.each([
    ['player', '{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}'],
    ['captions', ''],
    ['captions', '<html><title>403 Forbidden</title></html>'],
  ])('a 403 to a request for %s is a block: %s', (kind, body) => {
    const headers = { 'content-type': body.startsWith('{') ? 'application/json' : 'text/html' };
    expect(classifyResponse(403, headers, body, kind)).toMatchObject({ kind: 'blocked', reason: 'forbidden' });
    expect(classifyResponse(403, headers, body, 'uploads')).toMatchObject({ kind: 'http-error', status: 403 });
  });

  it('any 429 is a block, with its Retry-After', () => {
    expect(classifyResponse(429, { 'content-type': 'application/json', 'retry-after': '7' }, '{}')).toEqual({
      ...{ kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 },
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
      ...{ kind: 'http-error', status: 404, media: 'json' },
    });
    expect(classifyResponse(503, { 'content-type': 'text/html' }, '<html>busy</html>')).toEqual({
      kind: 'http-error',
      status: 503,
      media: 'html',
    });
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
