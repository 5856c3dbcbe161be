import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyPathAndQuery } from '../../../../test/texts/any-text.js';
import { addressKind, contactedUrl } from './http-transport.js';

describe('addressKind', () => {
  it.each(['https://www.youtube.com/api/timedtext?v=x', 'https://youtube.com/', 'https://m.youtube.com/watch'])(
    '%s is allowed',
    (url) => {
      expect(addressKind(new URL(url))).toBe('allowed');
    },
  );

  it.each([
    'http://www.youtube.com/api/timedtext',
    'https://www.youtube.com:8443/',
    'https://user:secret@www.youtube.com/',
    'https://www.youtube.com.example.org/',
    'https://example.org/?www.youtube.com',
    'https://evilyoutube.com/',
    'https://169.254.169.254/latest/meta-data',
    'file:///etc/passwd',
    'data:text/xml,<transcript/>',
    'https://www.google.com/search',
  ])('%s is foreign', (url) => {
    expect(addressKind(new URL(url))).toBe('foreign');
  });

  it('recognizes the refusal pages by their URL', () => {
    expect(addressKind(new URL('https://consent.youtube.com/m?continue=x'))).toBe('consent');
    expect(addressKind(new URL('https://consent.google.co.uk/ml'))).toBe('consent');
    expect(addressKind(new URL('https://www.google.com/sorry/index?continue=x'))).toBe('captcha');
  });
});

describe('contactedUrl', () => {
  const url = new URL('https://www.youtube.com/api/timedtext?v=a%20b&lang=en');

  it('is the URL itself without a base URL', () => {
    expect(contactedUrl(url, null)).toBe(url);
  });

  it('replaces the origin and prefixes the base path', () => {
    expect(contactedUrl(url, new URL('http://127.0.0.1:8080')).href).toBe(
      'http://127.0.0.1:8080/api/timedtext?v=a%20b&lang=en',
    );
    expect(contactedUrl(url, new URL('https://gateway.example/yt/')).href).toBe(
      'https://gateway.example/yt/api/timedtext?v=a%20b&lang=en',
    );
  });

  it('has the origin of the base URL for any path and query', () => {
    fc.assert(
      fc.property(anyPathAndQuery(), (path) => {
        const from = new URL(`https://www.youtube.com${path}`);
        expect(contactedUrl(from, new URL('http://127.0.0.1:1/base')).origin).toBe('http://127.0.0.1:1');
      }),
    );
  });
});
