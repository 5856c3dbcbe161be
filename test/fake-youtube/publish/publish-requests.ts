import { z } from 'zod';
import { validJson } from '../settings.js';
import type { ChannelChange, Publication, VideoChange } from './current-catalogue.js';
import { VIDEO_STATES } from './published-video.js';

const whole = z.int().nonnegative();
const names = z.array(z.string());

const publication = z.strictObject({
  channel: z.string(),
  count: whole.max(20_000).optional(),
  as: z.enum(VIDEO_STATES).optional(),
  below: whole.optional(),
  title: z.string().optional(),
  publishedAt: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .optional(),
});

const videoChange = z.union([
  z.strictObject({ videoIds: names, as: z.enum(VIDEO_STATES) }),
  z.strictObject({ videoIds: names, deleted: z.literal(true) }),
]);

const channelChange = z.strictObject({
  channel: z.string(),
  name: z.string().optional(),
  handle: z.string().startsWith('@').optional(),
  terminated: z.boolean().optional(),
  order: names.optional(),
});

/** Reads the body of a control request. @throws UnreadableError */
export function readPublication(body: string): Publication {
  return validJson(publication, body);
}

/** Reads the body of a control request. @throws UnreadableError */
export function readVideoChange(body: string): VideoChange {
  return validJson(videoChange, body);
}

/** Reads the body of a control request. @throws UnreadableError */
export function readChannelChange(body: string): ChannelChange {
  return validJson(channelChange, body);
}
