import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asArray, asString, at } from '../../src/platform/youtube/response-parsing.js';
import { type Adapter, context, end, openAdapter } from '../youtube/adapter.js';
import { readRecordings, type Replay, startReplay } from './replay.js';

/*
 * Plays traffic that `npm run smoke -- @handle --record DIRECTORY` wrote: the adapter has to read it with the outcomes of
 * the report. A recording of a machine that YouTube refuses is played as well, with its refusals.
 */
const folder = process.env['RECORDINGS_DIR'] ?? '';
const report: unknown = JSON.parse(readFileSync(join(folder, 'report/report.json'), 'utf8'));
const channelId = asString(at(report, 'channel', 'id')) ?? '';
const videos = asArray(at(report, 'videos'));
const worked = (area: string): boolean =>
  asArray(at(report, 'checks')).some((check) => at(check, 'area') === area && at(check, 'works') === true);

let replay: Replay;
let adapter: Adapter;

beforeAll(async () => {
  replay = await startReplay(folder, {});
  adapter = await openAdapter(replay.url);
});

afterAll(async () => {
  await adapter.close();
  await replay.close();
});

describe('the recorded traffic of the doctor', () => {
  (worked('channel') ? it : it.skip)('has the channel of the report', async () => {
    await expect(adapter.platform.readChannel(channelId, context())).resolves.toEqual(at(report, 'channel'));
  });

  (worked('uploads') ? it : it.skip)('lists the uploads of the report', async () => {
    const { uploads } = await adapter.platform.listUploads(channelId, videos.length, context());
    const listed = uploads.slice(0, videos.length).map(({ videoId }) => videoId);
    expect(listed).toEqual(videos.map((video) => at(video, 'videoId')));
  });

  it('has the outcome of the report for each video that was requested', async () => {
    const requested = new Set(
      [...readRecordings(folder).values()].map(
        ({ request }) => at(request, 'videoId') ?? at(request, 'playerRequest', 'videoId'),
      ),
    );
    const compared = videos.filter((each) => requested.has(at(each, 'videoId')));
    if (worked('videos')) expect(compared).not.toEqual([]);
    for (const video of compared) {
      const videoId = asString(at(video, 'videoId')) ?? '';
      const outcome = await adapter.platform.readVideo(videoId, [], context());
      const lines = outcome.ok ? [...outcome.transcript].map(([code, segments]) => [code, segments.length]) : [];
      expect({ videoId, outcome: end(outcome), lines: Object.fromEntries(lines) }).toEqual({
        ...{ videoId, outcome: at(video, 'outcome'), lines: at(video, 'lines') },
      });
    }
  });
});
