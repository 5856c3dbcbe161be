import { describe, expect, it } from '@jest/globals';
import { sourceOf } from './job-request.js';

describe('what a subscription follows', () => {
  it.each([
    [{ channel: 'UCtidewater_____________', playlist: null }, 'UCtidewater_____________'],
    [{ channel: '@tidewater', playlist: null }, '@tidewater'],
    [{ channel: 'https://www.youtube.com/@tidewater', playlist: null }, '@tidewater'],
    [{ channel: null, playlist: 'PLabcdefghijkl' }, 'PLabcdefghijkl'],
    // Both are a handle without its @ and the ID of a playlist.
    [{ channel: 'PLabcdefghijkl', playlist: null }, '@PLabcdefghijkl'],
  ])('%j has one name, which no other list has: %s', (request, source) => {
    expect(sourceOf(request)).toBe(source);
  });
});
