import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asArray, asString, at } from '../../src/platform/youtube/response-parsing.js';
import { type Adapter, context, end, listUploads, openAdapter } from '../youtube/adapter.js';
import { readRecordings, type Replay, startReplay } from './replay.js';

/** What the report of the doctor states, and what the adapter reads from the traffic that was recorded with it. */
interface Comparison {
  recorded: unknown;
  played: unknown;
}

/**
 * Plays traffic that `npm run smoke -- @handle --record DIRECTORY` wrote: the adapter has to read it with the outcomes of
 * the report. A recording of a machine that YouTube refuses is played as well, with its refusals.
 */
export class RecordedReport {
  private readonly report: unknown;
  private readonly channelId: string;
  private readonly videos: readonly unknown[];
  private replay: Replay | undefined;
  private adapter: Adapter | undefined;

  constructor(private readonly folder: string) {
    this.report = JSON.parse(readFileSync(join(folder, 'report/report.json'), 'utf8'));
    this.channelId = asString(at(this.report, 'channel', 'id')) ?? '';
    this.videos = asArray(at(this.report, 'videos'));
  }

  /** Whether the doctor could read the channel. */
  get hasChannel(): boolean {
    return at(this.report, 'channel') !== null;
  }

  get hasUploads(): boolean {
    return this.videos.length > 0;
  }

  /** Whether a video was answered. */
  get serves(): boolean {
    return at(this.report, 'serves') === true;
  }

  async open(): Promise<void> {
    this.replay = await startReplay(this.folder, {});
    this.adapter = await openAdapter(this.replay.url);
  }

  async close(): Promise<void> {
    await this.adapter?.close();
    await this.replay?.close();
  }

  async channel(): Promise<Comparison> {
    return {
      recorded: at(this.report, 'channel'),
      played: await this.platform.readChannel(this.channelId, context()),
    };
  }

  async uploads(): Promise<Comparison> {
    const { uploads } = await listUploads(this.platform, this.channelId, this.videos.length);
    const recorded = this.videos.map((video) => at(video, 'videoId'));
    // The doctor leaves out what cannot have captions.
    return { recorded, played: uploads.map(({ videoId }) => videoId).filter((id) => recorded.includes(id)) };
  }

  /** The outcome of each video that was requested. */
  async outcomes(): Promise<Comparison[]> {
    const requested = new Set(
      [...readRecordings(this.folder).values()].map(
        ({ request }) => at(request, 'videoId') ?? at(request, 'playerRequest', 'videoId'),
      ),
    );
    const comparisons: Comparison[] = [];
    for (const video of this.videos.filter((each) => requested.has(at(each, 'videoId')))) {
      const videoId = asString(at(video, 'videoId')) ?? '';
      const outcome = await this.platform.readVideo(videoId, [], context());
      const lines = outcome.ok ? [...outcome.transcript].map(([code, segments]) => [code, segments.length]) : [];
      comparisons.push({
        recorded: { videoId, outcome: at(video, 'outcome'), lines: at(video, 'lines') },
        played: { videoId, outcome: end(outcome), lines: Object.fromEntries(lines) },
      });
    }
    return comparisons;
  }

  private get platform(): Adapter['platform'] {
    if (this.adapter === undefined) throw new Error('The recording is not open.');
    return this.adapter.platform;
  }
}
