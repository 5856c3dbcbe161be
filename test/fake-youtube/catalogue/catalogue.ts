import { generatedChannelByHandle, generatedChannelById, generatedVideo } from './generated-channels.js';
import { HARBOUR_LIGHT } from './harbour-light.js';
import { type Channel, type Video } from './model.js';
import * as others from './other-channels.js';
import { PILOT_SCHOOL, TIDEWATER } from './other-channels.js';
import { SIGNAL_STATION } from './signal-station.js';

/** The fixed channels; `generated-channels.ts` has others. */
export const CHANNELS: readonly Channel[] = [
  HARBOUR_LIGHT,
  TIDEWATER,
  PILOT_SCHOOL,
  SIGNAL_STATION,
  others.FOG_SIGNAL,
  others.EMPTY_SLIP,
  others.DRY_DOCK,
  others.FOG_BANK_HUB,
  others.TERMINATED,
  others.AGE_GATED,
  others.UNICODE_HANDLE,
  others.WITHOUT_HANDLE,
  ...others.CONTROLS,
];

const VIDEOS = new Map(
  CHANNELS.flatMap((channel) => channel.uploads().map((video) => [video.id, { channel, video }] as const)),
);

export function channelById(id: string): Channel | undefined {
  return CHANNELS.find((channel) => channel.id === id) ?? generatedChannelById(id);
}

export function videoById(id: string): { channel: Channel; video: Video } | undefined {
  return VIDEOS.get(id) ?? generatedVideo(id);
}

/** Finds the channel for a path on the platform's site: `/@handle`, `/channel/ID`, `/c/name`, `/user/name`, `/name`. */
export function channelByPath(path: string): Channel | undefined {
  const [first = '', second = ''] = path.split('/').slice(1).map(comparable);
  if (first.startsWith('@')) return channelByHandle(first);
  if (first === 'channel') return channelById(path.split('/')[2] ?? '');
  if (first === 'user')
    return CHANNELS.find((channel) => channel.userNames.some((name) => comparable(name) === second));
  const name = first === 'c' ? second : first;
  return CHANNELS.find((channel) => channel.customNames.some((custom) => comparable(custom) === name));
}

function channelByHandle(handle: string): Channel | undefined {
  const found = CHANNELS.find((channel) => channel.handle !== null && comparable(channel.handle) === handle);
  return found ?? generatedChannelByHandle(handle);
}

/** A name in the form in which names are compared. */
export function comparable(name: string): string {
  return name.normalize('NFC').toLowerCase();
}
