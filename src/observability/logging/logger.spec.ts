import { describe, expect, it } from '@jest/globals';
import { createRedactor } from './logger.js';

describe('a redacted text', () => {
  it.each([
    ['whsec_' + 'Ab+/9'.repeat(9) + '=', 'whsec_…'],
    ['WHSEC_' + 'Ab-_9'.repeat(9), 'WHSEC_…'],
    ['eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl', 'eyJ…'],
    ['eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0', 'eyJ…'],
    ['eyJhbGciOiJkaXIifQ..AAAA.BBBB.CCCC', 'eyJ…'],
    ['moneyJar_of_the.day and eyJ.x', 'moneyJar_of_the.day and eyJ.x'],
    ['http://user-{session}:p%40ss@proxy:3128/', 'http://…@proxy:3128/'],
    ['nats://token@one:4222,tls://a:p@b@two', 'nats://…@one:4222,tls://…@two'],
    ['postgres://user:secret@host/name', 'postgres://…@host/name'],
    ['https://www.youtube.com/@handle?a@b', 'https://www.youtube.com/@handle?a@b'],
  ])('has no secret of %s', (text, shown) => {
    expect(createRedactor()(`before ${text} after`)).toBe(`before ${shown} after`);
  });

  it('contains neither an API key nor a token of the service, also as JSON', () => {
    const token = 'a"quote\\and-a-backslash';
    const redact = createRedactor(token, undefined);
    const text = `${token} and ctk_${'a'.repeat(20)}`;
    for (const shown of [redact(text), redact(JSON.stringify({ text }))]) {
      expect(shown).not.toContain('quote');
      expect(shown).not.toContain('a'.repeat(20));
      expect(shown).toContain('… and ctk_');
    }
  });
});
