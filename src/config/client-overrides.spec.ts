import { describe, expect, it } from '@jest/globals';
import { EnvironmentError, readEnvironment } from './environment.js';

const read = (value: string) => readEnvironment({ YOUTUBE_CLIENT_OVERRIDES: value }).YOUTUBE_CLIENT_OVERRIDES ?? [];

function faultsOf(value: string): readonly string[] {
  try {
    read(value);
    return [];
  } catch (error) {
    if (error instanceof EnvironmentError) return error.faults;
    throw error;
  }
}

describe('YOUTUBE_CLIENT_OVERRIDES', () => {
  it('sets fields of clients', () => {
    const overrides = { VISIONOS: { clientVersion: '1.04', osVersion: '26.6.0', userAgent: 'x/1.04' } };
    expect(
      read(JSON.stringify({ ...overrides, WEB: { clientVersion: '2.1' }, ANDROID: { androidSdkVersion: 30 } })),
    ).toEqual(
      new Map<string, object>([
        ['VISIONOS', overrides.VISIONOS],
        ['WEB', { clientVersion: '2.1' }],
        ['ANDROID', { androidSdkVersion: 30 }],
      ]),
    );
  });

  it.each(['x', '[]', 'null', '"VISIONOS"', '{"VISIONOS":'])('rejects %s, which is no JSON object', (value) => {
    expect(faultsOf(value)).toEqual(['YOUTUBE_CLIENT_OVERRIDES must be a JSON object of clients']);
  });

  it('reports every fault in a line of its own', () => {
    const faults = faultsOf(
      JSON.stringify({
        TVHTML5: {},
        IOS: 'newer',
        VISIONOS: { clientVersion: 1.04, userAgent: 'x\r\ny', version: '1.04', __proto__x: 1 },
        ANDROID: { androidSdkVersion: '30', osVersion: '' },
      }),
    );
    expect(faults).toEqual([
      'YOUTUBE_CLIENT_OVERRIDES.VISIONOS.clientVersion must be a text of 1 to 300 printable ASCII characters',
      'YOUTUBE_CLIENT_OVERRIDES.VISIONOS.userAgent must be a text of 1 to 300 printable ASCII characters',
      expect.stringMatching(
        /^YOUTUBE_CLIENT_OVERRIDES\.VISIONOS must name only the fields clientVersion, .*, not "version", "__proto__x"$/,
      ),
      'YOUTUBE_CLIENT_OVERRIDES.ANDROID.osVersion must be a text of 1 to 300 printable ASCII characters',
      'YOUTUBE_CLIENT_OVERRIDES.ANDROID.androidSdkVersion must be a positive whole number',
      'YOUTUBE_CLIENT_OVERRIDES.IOS must be a JSON object of fields',
      'YOUTUBE_CLIENT_OVERRIDES must name only the clients VISIONOS, ANDROID, IOS, ANDROID_REEL, ANDROID_VR, WEB, not "TVHTML5"',
    ]);
  });
});
