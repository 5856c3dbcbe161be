import { describe, expect, it } from '@jest/globals';
import { ChannelNotFoundError, UpstreamError } from '../../../domain/errors.js';
import { unlistedVideo } from '../../../domain/transcript.js';
import { ContinuationRejectedError, type UploadsListPage } from '../../video-platform.js';
import { DataApiChannels } from '../data-api/data-api-channels.js';
import { DataApiClient, DataApiUnansweredError, type FallbackReason } from '../data-api/data-api-client.js';
import { ChannelSources } from './channel-sources.js';
import { InnertubeChannels } from './innertube-channels.js';

const CHANNEL_ID = `UC${'c'.repeat(22)}`;

/** What a source answers to a token (or `first`); an error is thrown. */
type Pages = Readonly<Record<string, UploadsListPage | Error>>;

/** @param dataApi undefined when no key is configured */
function open(innertube: Pages, dataApi?: Pages) {
  const requested: string[] = [];
  const fallbacks: FallbackReason[] = [];
  const lister = (name: string, pages: Pages) => ({
    listUploadsPage: (_channelId: string, token: string | undefined) => {
      requested.push(`${name} ${token ?? 'first'}`);
      const page = pages[token ?? 'first'] ?? new Error(`No page ${token}`);
      return page instanceof Error ? Promise.reject(page) : Promise.resolve(page);
    },
  });
  const client = Object.create(DataApiClient.prototype, {
    configured: { value: dataApi !== undefined },
    countFallback: { value: (reason: FallbackReason) => void fallbacks.push(reason) },
  }) as DataApiClient;
  const sources = new ChannelSources(
    client,
    Object.assign(Object.create(DataApiChannels.prototype) as DataApiChannels, lister('data-api', dataApi ?? {})),
    Object.assign(Object.create(InnertubeChannels.prototype) as InnertubeChannels, lister('innertube', innertube)),
  );
  const context = { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} };
  const list = (continuation?: string) => sources.listUploadsPage(CHANNEL_ID, continuation, context);
  return { list, requested, fallbacks };
}

const page = (videoId: string, next: string | null): UploadsListPage => ({ uploads: [unlistedVideo(videoId)], next });
const A = page('aaaaaaaaaaa', 'token:2\n');
const B = page('bbbbbbbbbbb', null);

/** The continuation after the first page. */
async function continuationOf(list: (continuation?: string) => Promise<UploadsListPage>): Promise<string> {
  const { next } = await list();
  if (next === null) throw new Error('The list ends with its first page.');
  return next;
}

describe('a list of all uploads', () => {
  it.each([
    ['innertube', undefined],
    ['data-api', { first: A, 'token:2\n': B }],
  ] as const)('is continued by its source, which is %s', async (source, dataApi) => {
    const { list, requested } = open(dataApi ? {} : { first: A, 'token:2\n': B }, dataApi);
    const next = await continuationOf(list);
    await expect(list(next)).resolves.toEqual(B);
    // The same continuation means the same page, whoever uses it again.
    await expect(list(next)).resolves.toEqual(B);
    expect(requested).toEqual([`${source} first`, `${source} token:2\n`, `${source} token:2\n`]);
  });

  it('goes on from InnerTube when a key of the Data API is configured meanwhile', async () => {
    const next = await continuationOf(open({ first: A }).list);
    const { list, requested } = open({ 'token:2\n': B }, { first: A });
    await expect(list(next)).resolves.toEqual(B);
    expect(requested).toEqual(['innertube token:2\n']);
  });

  it('starts again when the Data API is not used any more, or does not answer', async () => {
    const next = await continuationOf(open({}, { first: A }).list);
    await expect(open({ first: A }).list(next)).rejects.toThrow(ContinuationRejectedError);
    const refusing = { 'token:2\n': new DataApiUnansweredError('quota'), first: new DataApiUnansweredError('quota') };
    const { list, requested, fallbacks } = open({ first: B }, refusing);
    await expect(list(next)).rejects.toThrow(ContinuationRejectedError);
    await expect(list()).resolves.toEqual(B);
    expect(requested).toEqual(['data-api token:2\n', 'data-api first', 'innertube first']);
    expect(fallbacks).toEqual(['quota']);
  });

  it.each(['', 'x', 'innertube', 'innertube:2:', 'innertube:0:t', 'innertube:-1:t', 'innertube:2e3:t', 'rss:2:t'])(
    'starts again after %j, which is no continuation, without a request',
    async (continuation) => {
      const { list, requested } = open({ first: A }, { first: A });
      await expect(list(continuation)).rejects.toThrow(ContinuationRejectedError);
      expect(requested).toEqual([]);
    },
  );

  it.each([
    ['ChannelNotFoundError', new ChannelNotFoundError()],
    ['UpstreamError', new UpstreamError('upstream_blocked')],
    ['ContinuationRejectedError', new ContinuationRejectedError()],
  ])('%s of a source is reported as it is', async (_, error) => {
    await expect(open({ first: error }).list()).rejects.toBe(error);
    await expect(open({ t: error }).list('innertube:2:t')).rejects.toBe(error);
    await expect(open({}, { t: error }).list('data-api:2:t')).rejects.toBe(error);
  });

  it('that never ends is cut after 5,000 pages', async () => {
    const { list, requested } = open({ first: page('aaaaaaaaaaa', 't'), t: page('aaaaaaaaaaa', 't') });
    let { next } = await list();
    while (next !== null) ({ next } = await list(next));
    expect(requested.length).toBe(5_000);
  });
});
