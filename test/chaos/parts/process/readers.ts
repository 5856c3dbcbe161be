import { connect, type Socket } from 'node:net';
import { FakeYoutubeProcess } from '../../harness/fake-youtube-process.js';
import { Service, type Customer } from '../../harness/service.js';
import { brokenIdentities, readTranscripts } from '../../harness/transcripts.js';
import { until } from '../../harness/until.js';
import { atMost, equal, nothing, type ChaosRun } from '../../chaos-run.js';
import { bookOf, type Findings } from './findings.js';

const MEGABYTE = 1024 * 1024;
const BUFFER_MEGABYTES = 64;
/** A call may use a sixteenth of it. */
const CALL_MEGABYTES = BUFFER_MEGABYTES / 16;
const CACHE_MEGABYTES = 16;
/** Just below the 4 MB of caption text that the service accepts for a video, and random, so that it hardly compresses. */
const CUES = 11_500;
const READERS = 4;
/** In addition to a call's buffer: the text being sent and the next one. */
const TEXTS_BESIDE = 2;
/** UPSTREAM_CONCURRENCY's default: the number of texts that may still arrive when the calls stop fetching. */
const TEXTS_ARRIVING = 16;
const TEXT_MEGABYTES = 4;
/** Texts being fetched, parsed and compressed concurrently, and the overhead of the memory allocator. */
const WORKING_MEGABYTES = 250;

/** Calls for a hundred videos with the largest captions, whose clients read nothing. */
export async function readers({ folder, database, short, say }: ChaosRun): Promise<Findings> {
  const videos = short ? 20 : 100;
  const fakeYoutube = await FakeYoutubeProcess.start(folder);
  const service = await Service.start(folder, {
    DATABASE_URL: await database.create(),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    CACHE_MAX_MEGABYTES: String(CACHE_MEGABYTES),
    RESPONSE_BUFFER_MAX_MEGABYTES: String(BUFFER_MEGABYTES),
    RATE_LIMIT_PER_MINUTE: '0',
  });
  const sockets: Socket[] = [];
  try {
    const customer = await service.customer();
    await service.get('/channels/@bench-4x1500/transcripts', customer.key);
    const before = await service.resources();
    say(`${READERS} unread calls of ${videos} videos with the largest captions`);
    const port = Number(new URL(service.url).port);
    for (let reader = 0; reader < READERS; reader += 1)
      sockets.push(request(port, `/channels/@noise-${videos}x${CUES - reader}/transcripts?limit=${videos}`, customer));
    await until(
      'All calls are settled',
      async () => {
        const { reserved, used } = (await service.get('/usage', customer.key)).body as Record<string, number>;
        return reserved === 0 && (used ?? 0) > READERS;
      },
      60_000,
      250,
    );
    const holding = await service.resources();
    for (const socket of sockets) socket.destroy();
    const read = await service.get(`/channels/@noise-${videos}x${CUES}/transcripts?limit=3`, customer.key);
    const reported = readTranscripts(read);
    const book = bookOf(await service.command('usage', customer.id, '--verify'));
    const after = await service.resources();
    const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(0);
    const allowed =
      CACHE_MEGABYTES + READERS * (CALL_MEGABYTES + TEXTS_BESIDE * TEXT_MEGABYTES) + TEXTS_ARRIVING * TEXT_MEGABYTES;
    return {
      rows: [
        [
          'calls with huge captions whose responses are never read',
          `${READERS} of ${videos} videos; external memory ${megabytes(before.external)} MB before, ` +
            `${megabytes(holding.external)} MB while they wait, ${megabytes(after.external)} MB when they have left; ` +
            `at most ${megabytes(holding.peakRss)} MB resident`,
        ],
      ],
      checks: [
        atMost(
          'texts buffered for readers, without the cache',
          (holding.external - before.external) / MEGABYTE,
          allowed,
          'MB',
        ),
        atMost(
          'maximum memory of the service above its start',
          (holding.peakRss - before.rss) / MEGABYTE,
          allowed + WORKING_MEGABYTES,
          'MB',
        ),
        nothing('inconsistencies in a later call', reported ? brokenIdentities(reported) : [`status ${read.status}`]),
        equal('usage is exact, transcripts reserved', [book.exact, book.reserved], [true, 0]),
      ],
    };
  } finally {
    for (const socket of sockets) socket.destroy();
    await service.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.stop();
  }
}

function request(port: number, path: string, { key }: Customer): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  return socket;
}
