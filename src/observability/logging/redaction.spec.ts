import { describe, expect, it } from '@jest/globals';
import { createRedactor } from './redaction.js';

describe('a redacted text', () => {
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
