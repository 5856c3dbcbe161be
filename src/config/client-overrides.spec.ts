import { describe, expect, it } from '@jest/globals';
import { readEnvironment } from './environment.js';

const read = (overrides: unknown) =>
  readEnvironment({ YOUTUBE_CLIENT_OVERRIDES: JSON.stringify(overrides) }).YOUTUBE_CLIENT_OVERRIDES;

describe('YOUTUBE_CLIENT_OVERRIDES', () => {
  it('sets fields of clients', () => {
    const overrides = { VISIONOS: { clientVersion: '1.04', userAgent: 'x/1.04' }, ANDROID: { androidSdkVersion: 30 } };
    expect(read(overrides)).toEqual(overrides);
  });

  it.each<[unknown, RegExp]>([
    ['VISIONOS', /^YOUTUBE_CLIENT_OVERRIDES must be a JSON object of the clients ANDROID, /],
    [{ TVHTML5: {} }, /^YOUTUBE_CLIENT_OVERRIDES must be a JSON object of the clients ANDROID, /],
    [{ IOS: 'newer' }, /^YOUTUBE_CLIENT_OVERRIDES\.IOS must be a JSON object of the fields clientVersion, /],
    [{ IOS: { version: '1' } }, /^YOUTUBE_CLIENT_OVERRIDES\.IOS must be a JSON object of the fields clientVersion, /],
    [{ IOS: { clientVersion: 1.04 } }, /\.IOS\.clientVersion must be a text of 1 to 300 printable ASCII characters$/],
    [{ IOS: { userAgent: 'x\r\ny' } }, /\.IOS\.userAgent must be a text of 1 to 300 printable ASCII characters$/],
    [{ ANDROID: { androidSdkVersion: '30' } }, /\.ANDROID\.androidSdkVersion must be a positive whole number$/],
  ])('rejects %j with one line that names the place', (overrides, line) => {
    expect(() => read(overrides)).toThrow(line);
  });
});
