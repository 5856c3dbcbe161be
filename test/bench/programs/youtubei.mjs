/* youtubei.js as its documentation shows it, one video after another or all at once (the argument). */
import { Innertube, Log } from 'youtubei.js';
import { answerBench, fetchAtFakeYoutube } from './collector.mjs';

const allAtOnce = process.argv[2] === 'all';
Log.setLevel(Log.Level.NONE);
const youtube = await Innertube.create({
  fetch: fetchAtFakeYoutube,
  generate_session_locally: true,
  retrieve_player: false,
  retrieve_innertube_config: false,
});

async function transcript(videoId) {
  const info = await youtube.getBasicInfo(videoId, { client: 'VISIONOS' });
  const url = new URL(info.captions.caption_tracks[0].base_url);
  url.searchParams.set('fmt', 'json3');
  const { events } = await (await fetchAtFakeYoutube(url.href)).json();
  return events
    .filter((event) => event.segs && event.aAppend !== 1)
    .map((event) => ({
      text: event.segs.map((seg) => seg.utf8).join(''),
      start: event.tStartMs / 1000,
      duration: event.dDurationMs / 1000,
    }));
}

answerBench(async ({ handle, videos }) => {
  const endpoint = await youtube.resolveURL(`https://www.youtube.com/${handle}`);
  const playlist = await youtube.getPlaylist(`UU${endpoint.payload.browseId.slice(2)}`);
  const ids = playlist.items.map((item) => item.content_id ?? item.id).slice(0, videos);
  if (allAtOnce) return Promise.all(ids.map(transcript));
  const found = [];
  for (const id of ids) found.push(await transcript(id));
  return found;
});
