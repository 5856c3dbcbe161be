/*
 * youtube-transcript-plus, all videos at once. It reads a key out of the watch page first, which the fake YouTube does not
 * have. The website's player response is used instead: the page contains it, and as much other data again.
 */
import { fetchTranscript } from 'youtube-transcript-plus';
import { answerBench, askAsWeb, fetchAtFakeYoutube, listUploads } from './collector.mjs';

const toFakeYoutube = ({ url, method = 'GET', headers, body }) => fetchAtFakeYoutube(url, { method, headers, body });
const config = {
  playerFetch: toFakeYoutube,
  transcriptFetch: toFakeYoutube,
  videoFetch: async ({ url }) => {
    const answer = await askAsWeb('player', { videoId: new URL(url).searchParams.get('v') });
    const text = async () => `<script>{"INNERTUBE_API_KEY":"fake-youtube"}</script>${await answer.text()}`;
    return { ok: answer.ok, status: answer.status, text };
  },
};

answerBench(async ({ handle, videos }) =>
  Promise.all((await listUploads(handle, videos)).map((id) => fetchTranscript(id, config))),
);
