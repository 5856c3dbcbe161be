import { describe, expect, it } from '@jest/globals';
import { unknownParameterMessage } from './unknown-parameter.js';

const VALID = ['limit', 'languages', 'since', 'include', 'chunkSeconds'];
const OF_A_TOOL = ['maxChars', 'maxMatches', 'limit', 'kinds', 'name'];

describe('the message about an unknown parameter', () => {
  it('names the valid ones', () => {
    expect(unknownParameterMessage('page', 'operation', VALID)).toBe(
      '"page" is not a parameter of this operation. Its parameters: limit, languages, since, include, chunkSeconds.',
    );
    expect(unknownParameterMessage('page', 'tool', [])).toBe(
      '"page" is not a parameter of this tool. It takes no parameters here.',
    );
  });

  it.each([
    ['lang', 'languages'],
    ['Language', 'languages'],
    ['limits', 'limit'],
    ['limt', 'limit'],
    ['sinse', 'since'],
    ['langauges', 'languages'],
    ['inlcude', 'include'],
    ['chunk_seconds', 'chunkSeconds'],
    ['limit[]', 'limit'],
  ])('names the one that %s means', (name, meant) => {
    expect(unknownParameterMessage(name, 'operation', VALID)).toContain(` Did you mean ${meant}? `);
  });

  it.each([
    ['max', 'limit'],
    ['max_results', 'limit'],
    ['type', 'kinds'],
    ['maxChar', 'maxChars'],
  ])('names the one that %s is called elsewhere', (name, meant) => {
    expect(unknownParameterMessage(name, 'tool', OF_A_TOOL)).toContain(` Did you mean ${meant}? `);
  });

  it.each(['page', 'constructor', 'time'])('takes %s for no other short name', (name) => {
    expect(unknownParameterMessage(name, 'tool', OF_A_TOOL)).not.toContain('Did you mean');
  });

  it.each(['page', 'offset', 'cursor', 'l', '', '__proto__', 'x'.repeat(80)])('guesses nothing for %p', (name) => {
    expect(unknownParameterMessage(name, 'operation', VALID)).not.toContain('Did you mean');
  });
});
