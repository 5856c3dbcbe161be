import { describe, expect, it } from '@jest/globals';
import { project } from './partial-response.js';

const ANSWER = {
  status: { code: 'OK', reason: 'none' },
  tracks: [
    { url: 'a', name: { text: 'A' } },
    { url: 'b', name: { text: 'B' }, kind: 'asr' },
  ],
};

describe('$fields', () => {
  it('selects whole properties', () => {
    expect(project(ANSWER, 'status')).toEqual({ status: ANSWER.status });
  });

  it('follows paths and looks through lists', () => {
    expect(project(ANSWER, 'tracks/name/text')).toEqual({ tracks: [{ name: { text: 'A' } }, { name: { text: 'B' } }] });
  });

  it('takes groups, also below a path', () => {
    expect(project(ANSWER, 'status(code),tracks(url,name/text)')).toEqual({
      status: { code: 'OK' },
      tracks: [
        { url: 'a', name: { text: 'A' } },
        { url: 'b', name: { text: 'B' } },
      ],
    });
  });

  it('takes * for any name', () => {
    expect(project(ANSWER, '*/code')).toEqual({ status: { code: 'OK' }, tracks: [{}, {}] });
  });

  it('omits properties that do not exist', () => {
    expect(project(ANSWER, 'captions/tracks,status/code')).toEqual({ status: { code: 'OK' } });
  });

  it.each(['', 'a(', 'a(b', 'a)', ',a', 'a,,b', 'a/', 'a b'])('cannot read %j', (fields) => {
    expect(project(ANSWER, fields)).toBeUndefined();
  });
});
