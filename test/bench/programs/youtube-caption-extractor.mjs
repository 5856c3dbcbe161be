/*
 * youtube-caption-extractor, all at once. It asks as an iPhone first, which the stand-in does not know; its requests are
 * passed on as those of its second client, so that it pays for no refusal that the platform would not give it.
 */
import { getSubtitles } from 'youtube-caption-extractor';
import { answerBench, fetchAtStandIn, listUploads } from './collector.mjs';

function fetchAsVr(url, init = {}) {
  if (typeof init.body !== 'string') return fetchAtStandIn(url, init);
  const headers = { ...init.headers, 'X-YouTube-Client-Name': '28' };
  return fetchAtStandIn(url, {
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
