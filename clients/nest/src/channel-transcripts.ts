import type { ChannelTranscriptsClient, Subscriptions } from '@channel-transcripts/client';

/** The operations that the service has over every transport, as `@channel-transcripts/client` describes them. */
export type Operations = Pick<ChannelTranscriptsClient, (typeof OPERATION_NAMES)[number]> & {
  subscriptions: Pick<Subscriptions, 'feed' | 'follow'>;
};

export const OPERATION_NAMES = [
  'transcripts',
  'events',
  'playlist',
  'playlistEvents',
  'videos',
  'videosEvents',
  'video',
  'uploads',
] as const;

/**
 * The service, to be injected. Every method throws ChannelTranscriptsError, with the code `no_response` when the service cannot
 * be reached. Over HTTP it is a `ChannelTranscriptsClient`.
 */
export abstract class ChannelTranscripts implements Operations {
  abstract readonly transcripts: Operations['transcripts'];
  abstract readonly events: Operations['events'];
  abstract readonly playlist: Operations['playlist'];
  abstract readonly playlistEvents: Operations['playlistEvents'];
  abstract readonly videos: Operations['videos'];
  abstract readonly videosEvents: Operations['videosEvents'];
  abstract readonly video: Operations['video'];
  abstract readonly uploads: Operations['uploads'];
  abstract readonly subscriptions: Operations['subscriptions'];
}
