import { unlistedVideo } from '../../domain/transcript.js';
import type { VideoSource } from './video-list.js';

/**
 * The source of a call that names its videos. A video that was not listed has no list metadata: its entry has what the video
 * itself states.
 *
 * @param videoIds in the order of the entries; a video that occurs twice gets two entries
 * @param resource what the ledger and the log name the call by
 */
export function givenVideos(videoIds: readonly string[], resource = 'videos'): VideoSource {
  const uploads = videoIds.map(unlistedVideo);
  return () => Promise.resolve({ header: { type: 'videos' }, resource, uploads });
}
