import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { videoId } from '../fake-youtube/catalogue/model.js';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { type Adapter, context, end, openAdapter, text } from './adapter.js';

let fakeYoutube: FakeYoutube;
let adapter: Adapter;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  adapter = await openAdapter(fakeYoutube.url);
});

beforeEach(() => fakeYoutube.reset());

afterAll(async () => {
  await adapter.close();
  await fakeYoutube.close();
});

const read = (name: string, languages: string[] = []) =>
  adapter.platform.readVideo(videoId(name), languages, context());

describe('the text', () => {
  it.each([
    ['of the full track and not of the forced one', 'ss-forced', /^two balls and a cone the harbour/],
    ['of a forced track when there is no other', 'ss-signs', /^SIGN: closed$/],
    ['of a track that comes as srv3 whatever is requested', 'ss-srv3', /^Short, long, short\. Salt & smoke > fog\.$/],
    ['has no entities, tags, time stamps or blank segments', 'ss-entities', /^Café — H2O Wait here$/],
    ['comes from the client that does not get a notice to update', 'ss-update', /^Two balls/],
  ])('%s', async (_case, name, expected) => {
    expect(text(await read(name), 'en')).toMatch(expected);
  });

  it('is found by the current and by the old code of its language, under the code of the platform', async () => {
    for (const language of ['he', 'iw']) expect(text(await read('ss-old-code', [language]), 'iw')).toMatch(/^שני/);
  });

  it('as srv3 costs one request', async () => {
    await read('ss-srv3');
    expect(fakeYoutube.requests.count({ kind: 'timedtext' })).toBe(1);
  });
});

describe('without a text', () => {
  it.each([
    ['a track without text', 'ss-blank', 'transcript_unavailable'],
    ['a stream that has just ended', 'ss-ended', 'video_live'],
    ['an interstitial screen for members', 'ss-crew', 'video_members_only'],
    ['an interstitial screen for an age', 'ss-night', 'video_age_restricted'],
  ])('%s is reported as such', async (_case, name, code) => {
    expect(end(await read(name))).toBe(code);
  });
});
