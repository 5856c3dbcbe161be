import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../test/texts/any-text.js';
import type { Request, Response } from 'express';
import { assignRequestContext, requestContext } from './request-context.js';
import { createRedactor } from '../../observability/logging/logger.js';

const TOKEN = 'an-admin-token-of-the-tests-0d3e';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function assigned(given: unknown): { request: Request; id: string; headers: Map<string, string>; passedOn: number } {
  const headers = new Map<string, string>();
  const request = { path: '/', headers: { 'x-request-id': given } } as unknown as Request;
  const response = {
    setHeader: (name: string, value: string) => headers.set(name, value),
    once: () => undefined,
  } as unknown as Response;
  let passedOn = 0;
  assignRequestContext(createRedactor(TOKEN))(request, response, () => passedOn++);
  return { request, id: requestContext(request).requestId, headers, passedOn };
}

describe('the id of a request', () => {
  it("is the caller's own when it is short and safe, and a new one otherwise", () => {
    const given = fc.oneof(
      anyText({ maxLength: 140 }),
      fc.stringMatching(/^[A-Za-z0-9._:/+=@-]{1,128}$/),
      fc.constantFrom<unknown>(undefined, '', 'a\n', 'a\r\nSet-Cookie: a', ['a', 'b'], 'x'.repeat(129)),
    );
    fc.assert(
      fc.property(given, (value) => {
        const { id, headers, passedOn } = assigned(value);
        const harmless =
          typeof value === 'string' &&
          value.length >= 1 &&
          value.length <= 128 &&
          // The credentials of a URL.
          !/:\/\/[^/]+@/.test(value) &&
          [...value].every((character) => /[A-Za-z0-9]/.test(character) || '._:/+=@-'.includes(character));
        if (harmless) expect(id).toBe(value);
        else expect(id).toMatch(UUID);
        expect(headers.get('X-Request-Id')).toBe(id);
        expect(passedOn).toBe(1);
      }),
    );
  });

  it("is a new one when the caller's own contains a token of the service, a key or credentials", () => {
    for (const given of [TOKEN, `a${TOKEN}b`, `ctk_${'a'.repeat(20)}`, '://a@'])
      expect(assigned(given).id).toMatch(UUID);
  });
});

describe('the context of a call', () => {
  it('is an error for a call that bypassed the middleware', () => {
    expect(() => requestContext({})).toThrow('assignRequestContext');
  });

  it('has no caller before authentication, so that a route without the guard fails closed', () => {
    const { request } = assigned(undefined);
    expect(() => requestContext(request).caller).toThrow('ApiKeyGuard');
  });
});
