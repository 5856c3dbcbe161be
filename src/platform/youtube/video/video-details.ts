import type { VideoDetails } from '../../../domain/transcript.js';

/** Joins what two answers told about one video; where both told something, the newer one counts. */
export function mergeDetails(known: VideoDetails, told: Partial<VideoDetails>): VideoDetails {
  return {
    publishedAt: told.publishedAt ?? known.publishedAt,
    durationSeconds: told.durationSeconds ?? known.durationSeconds,
    viewCount: told.viewCount ?? known.viewCount,
    kind: told.kind ?? known.kind,
    captionTracks: fuller(told.captionTracks ?? null, known.captionTracks),
  };
}

/** A client that sees no tracks does not undo that another one has seen them. */
function fuller(
  told: VideoDetails['captionTracks'],
  known: VideoDetails['captionTracks'],
): VideoDetails['captionTracks'] {
  if (told === null || (told.length === 0 && known !== null)) return known;
  return told;
}
