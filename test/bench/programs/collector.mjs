/*
 * The common part of the compared programs: each collects the transcripts of a channel on request, and
 * reports its duration and its results, so that an empty success does not count as a fast one.
 */

const FAKE_YOUTUBE = process.env.FAKE_YOUTUBE_URL;
const YOUTUBE = /^https:\/\/(?:www\.youtube\.com|youtube\.com|youtubei\.googleapis\.com)(?=\/)/;

/** An address of the platform, at the fake YouTube. */
export function atFakeYoutube(url) {
  return String(url).replace(YOUTUBE, FAKE_YOUTUBE);
}

const atOnce = Number(process.env.REQUESTS_AT_ONCE ?? Infinity);
const waiting = [];
let underWay = 0;

/**
 * The global fetch, redirected to the fake YouTube, with the concurrency that the benchmark allows; accepts what youtubei.js
 * hands over too, a Request and its body beside it.
 */
export async function fetchAtFakeYoutube(input, init = {}) {
  if (underWay >= atOnce) await new Promise((resolve) => waiting.push(resolve));
  else underWay += 1;
  try {
    if (!(input instanceof Request)) return await fetch(atFakeYoutube(input), init);
    return await fetch(atFakeYoutube(input.url), {
      method: input.method,
      headers: init.headers ?? input.headers,
      ...(init.body !== undefined && init.body !== null && { body: init.body }),
    });
  } finally {
    const next = waiting.shift();
    // The slot passes to the longest waiting request; it is free only when none waits.
    if (next) next();
    else underWay -= 1;
  }
}

/** A plain request to the platform's own interface, as its website makes them. */
export function askAsWeb(path, payload) {
  const context = { client: { clientName: 'WEB', clientVersion: '2.20261101.00.00', hl: 'en', gl: 'US' } };
  const body = JSON.stringify({ ...payload, context });
  const headers = { 'content-type': 'application/json' };
  return fetchAtFakeYoutube(`https://www.youtube.com/youtubei/v1/${path}`, { method: 'POST', headers, body });
}

/** The newest uploads of a channel in two requests, for the libraries that list none. */
export async function listUploads(handle, videos) {
  const ask = async (path, payload) => (await askAsWeb(path, payload)).json();
  const { endpoint } = await ask('navigation/resolve_url', { url: `https://www.youtube.com/${handle}` });
  const page = await ask('browse', { browseId: `VLUU${endpoint.browseEndpoint.browseId.slice(2)}` });
  const { content } = page.contents.twoColumnBrowseResultsRenderer.tabs[0].tabRenderer;
  return content.sectionListRenderer.contents[0].itemSectionRenderer.contents
    .flatMap((item) => item.lockupViewModel?.contentId ?? [])
    .slice(0, videos);
}

/**
 * Answers the bench.
 *
 * @param collect takes `{ videos, cues, handle }` and returns an array of cues for each video
 */
export function answerBench(collect) {
  process.on('message', async ({ collect: channel, id }) => {
    if (channel === undefined) return;
    const startedAt = performance.now();
    try {
      const found = await collect({ ...channel, handle: `@bench-${channel.videos}x${channel.cues}` });
      const ms = performance.now() - startedAt;
      const cues = found.reduce((sum, video) => sum + video.length, 0);
      process.send({ id, value: { ms, videos: found.length, cues } });
    } catch (error) {
      process.send({ id, error: error instanceof Error ? error.stack : String(error) });
    }
  });
  process.channel.ref();
  process.send({ ready: true });
}
