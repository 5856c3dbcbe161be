import { describe, expect, it } from '@jest/globals';
import { parseUrl } from './page-url.js';

/** After some thousand calls V8 optimizes the caller, which changes the result of `URL.canParse`. */
const CALLS = 20_000;

describe('parseUrl', () => {
  it('parses absolute URLs, and relative ones with a base', () => {
    expect(parseUrl('HTTPS://EXAMPLE.com')?.href).toBe('https://example.com/');
    expect(parseUrl('/a?b=1', 'https://example.com/c')?.href).toBe('https://example.com/a?b=1');
  });

  it.each(['', 'example.com', '/a', 'https://', 'https://a b/'])('returns undefined for %j', (text) => {
    expect(parseUrl(text)).toBeUndefined();
  });

  it('accepts a host that is not ASCII however often it is called', () => {
    let refused = 0;
    for (let call = 0; call < CALLS; call += 1) if (!parseUrl('https://bücher.example/hook')) refused += 1;
    expect(refused).toBe(0);
  });
});
