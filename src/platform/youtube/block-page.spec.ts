import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readHtmlKind } from './block-page.js';

describe('HTML where an answer was expected', () => {
  it.each([
    [
      'captcha',
      '<!DOCTYPE html><html><form action="/das_captcha?fw=1"><div class="g-recaptcha" data-sitekey="x"></div></form>',
    ],
    ['captcha', "<div  class='g-recaptcha'>"],
    ['captcha', '<form id="captcha-form" action="/sorry/index" method="post">'],
    ['consent', '<html><form action="https://consent.youtube.com/s" method="POST"><input type="hidden"></form>'],
    ['consent', '<form action="https://consent.google.com/save">'],
    ['other', '<html><style>.g-recaptcha { display: block }</style><p>503</p></html>'],
    ['other', '<a href="https://consent.youtube.com/s">privacy</a>'],
    ['other', ''],
  ])('is told as %s', (kind, body) => {
    expect(readHtmlKind(body)).toBe(kind);
  });

  it('never throws and takes no longer for a hostile body', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (body) =>
        expect(['captcha', 'consent', 'other']).toContain(readHtmlKind(body)),
      ),
    );
    const before = performance.now();
    for (const part of ['class', 'action ', 'class=', ' ', 'action="https://consent.'])
      readHtmlKind(part.repeat(2_000_000));
    expect(performance.now() - before).toBeLessThan(1_000);
  });
});
