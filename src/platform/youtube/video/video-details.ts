import type { VideoDetails } from '../../../domain/transcript.js';

/** Merges the details of two responses about one video; where both have a value, the newer one counts. */
export function mergeDetails(known: VideoDetails, parsed: Partial<VideoDetails>): VideoDetails {
  return {
    publishedAt: parsed.publishedAt ?? known.publishedAt,
    durationSeconds: parsed.durationSeconds ?? known.durationSeconds,
    viewCount: parsed.viewCount ?? known.viewCount,
    kind: parsed.kind ?? known.kind,
    captionTracks: fuller(parsed.captionTracks ?? null, known.captionTracks),
  };
}

/** A client that sees no tracks does not undo that another one has seen them. */
function fuller(
  parsed: VideoDetails['captionTracks'],
  known: VideoDetails['captionTracks'],
): VideoDetails['captionTracks'] {
  if (parsed === null || (parsed.length === 0 && known !== null)) return known;
  return parsed;
}
