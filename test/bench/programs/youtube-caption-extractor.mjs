/*
 * youtube-caption-extractor, all at once. It first uses the iPhone client, which the fake YouTube does not know; its requests are
 * passed on as those of its second client, so that it pays for no refusal that the platform would not give it.
 */
import { getSubtitles } from 'youtube-caption-extractor';
import { answerBench, fetchAtFakeYoutube, listUploads } from './collector.mjs';

function fetchAsVr(url, init = {}) {
  if (typeof init.body !== 'string') return fetchAtFakeYoutube(url, init);
  const headers = { ...init.headers, 'X-YouTube-Client-Name': '28' };
  return fetchAtFakeYoutube(url, {
    ...init,
    headers,
    body: init.body.replace('"clientName":"IOS"', '"clientName":"ANDROID_VR"'),
  });
}

answerBench(async ({ handle, videos }) =>
  Promise.all(
    (await listUploads(handle, videos)).map((videoID) => getSubtitles({ videoID, lang: 'en', fetch: fetchAsVr })),
  ),
);
