import { describe, expect, it } from '@jest/globals';
import { jwksUriOf } from './signing-keys.js';

describe('the address of the keys of a provider', () => {
  const of = (issuer: string, uri: string) => jwksUriOf({ issuer, jwks_uri: uri }, issuer);

  it.each([
    ['https://id.example.com', 'https://keys.example.com/jwks'],
    ['http://127.0.0.1:9', 'http://127.0.0.1:9/jwks'],
    ['http://localhost:9', 'https://keys.example.com/jwks'],
  ])('of %s may be %s', (issuer, uri) => {
    expect(of(issuer, uri)).toBe(uri);
  });

  it.each([
    ['https://id.example.com', 'http://keys.example.com/jwks'],
    ['https://id.example.com', 'http://127.0.0.1:9/jwks'],
    ['http://127.0.0.1:9', 'http://keys.example.com/jwks'],
    ['https://id.example.com', 'file:///etc/jwks'],
    ['https://id.example.com', 'jwks'],
  ])('of %s must not be %s, which is not as safe', (issuer, uri) => {
    expect(() => of(issuer, uri)).toThrow('not an https:// URL');
  });

  it('is not read from the document of another issuer', () => {
    expect(() => jwksUriOf({ issuer: 'https://b', jwks_uri: 'https://b/jwks' }, 'https://a')).toThrow('another issuer');
  });
});
