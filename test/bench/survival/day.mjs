import { generatedChannelByHandle } from '../../../dist-tools/test/fake-youtube/catalogue/generated-channels.js';

const MINUTE_MS = 60_000;
const DEADLINE_MS = 45_000;
const CALL_VIDEOS = 100;
/** Callers ask at most this many times as fast as new videos are wanted, so that a backlog shrinks when it can. */
const CATCH_UP = 2;
/** When a caller asks again for what was not served and came without a time. */
const AGAIN_MS = 5 * MINUTE_MS;
const CUES = 4;
const CHANNEL_VIDEOS = 9_999;

const TRUTHS = {
  deleted: 'video_unavailable',
  private: 'video_private',
  'members-only': 'video_members_only',
  'age-gated': 'video_age_restricted',
};
/** Of twenty videos of the catalogue, two need two players: the deleted one and the one made for kids. */
const PLAYERS_PER_VIDEO = 22 / 20;

/** How many videos an hour are wanted at a multiple of what the egresses' budgets allow. */
export function perHourOf({ egresses, demand, budgets }) {
  return (demand * egresses * budgets.player.perMinute * 60) / PLAYERS_PER_VIDEO;
}

/** How many videos of a day can be served within the budgets. Those of a gateway do not end. */
export function allowedVideos({ egresses, gateway, perHour, hours, budgets }) {
  const wanted = Math.floor((perHour * hours) / CALL_VIDEOS) * CALL_VIDEOS;
  const players = egresses * (budgets.player.burst + budgets.player.perMinute * 60 * hours);
  return gateway ? wanted : Math.min(wanted, players / PLAYERS_PER_VIDEO);
}

/**
 * A day of callers who want channels of 100 videos at a steady rate, each in a call with a deadline, and who call again
 * for what failed for a reason that passes.
 *
 * @returns how the videos ended, and how often a code was wrong
 */
export async function runDay(time, read, { perHour, hours }) {
  const videos = catalogue(Math.ceil(perHour * hours));
  const wanted = [];
  const ends = { served: 0, servedAtFirst: 0, asked: 0, wrong: 0 };
  const pending = new Set();
  let next = 0;
  const one = async (entry, context) => {
    entry.calls += 1;
    const end = await read(entry.video.id, context).catch(() => ({ ok: false, failure: { code: 'upstream_timeout' } }));
    const code = end.ok ? 'ok' : end.failure.code;
    if (!code.startsWith('upstream_')) {
      ends.served += 1;
      if (entry.calls === 1) ends.servedAtFirst += 1;
      if (code !== truthOf(entry.video)) ends.wrong += 1;
      return;
    }
    const seconds = end.failure?.retryAfterSeconds ?? null;
    wanted.push({ ...entry, notBeforeMs: time.nowMs + (seconds === null ? AGAIN_MS : seconds * 1_000) });
  };
  const call = async (entries) => {
    const controller = new AbortController();
    const deadlineAtMs = performance.now() + DEADLINE_MS;
    const timer = setTimeout(() => controller.abort(new Error('deadline')), DEADLINE_MS);
    const context = { signal: controller.signal, deadlineAtMs, organizationId: 'callers', fairnessKey: {} };
    await Promise.all(entries.map((entry) => one(entry, context)));
    clearTimeout(timer);
  };
  for (let minute = 0; minute < hours * 60; minute += 1) {
    for (const due = channelsUntil(minute + 1, perHour) * CALL_VIDEOS; next < due; next += 1) {
      wanted.push({ video: videos[next], notBeforeMs: 0, calls: 0 });
      ends.asked += 1;
    }
    for (const entries of callsOf(wanted, time.nowMs, Math.max(CALL_VIDEOS, (CATCH_UP * perHour) / 60))) {
      const running = call(entries).finally(() => pending.delete(running));
      pending.add(running);
    }
    await time.wait(MINUTE_MS);
  }
  await Promise.all(pending);
  return ends;
}

/** Whole channels wanted in the first minutes of the day. */
function channelsUntil(minutes, perHour) {
  return Math.floor((minutes * perHour) / 60 / CALL_VIDEOS);
}

/** Takes up to `most` videos that may be asked for now, in calls of up to 100. */
function callsOf(wanted, nowMs, most) {
  const ready = wanted.filter(({ notBeforeMs }) => notBeforeMs <= nowMs).slice(0, most);
  const taken = new Set(ready);
  wanted.splice(0, wanted.length, ...wanted.filter((entry) => !taken.has(entry)));
  const calls = [];
  for (let start = 0; start < ready.length; start += CALL_VIDEOS) calls.push(ready.slice(start, start + CALL_VIDEOS));
  return calls;
}

function truthOf(video) {
  return TRUTHS[video.state] ?? (video.tracks.length === 0 ? 'transcript_unavailable' : 'ok');
}

/** As many videos as wanted, of generated channels. */
function catalogue(count) {
  const videos = [];
  for (let cues = CUES; videos.length < count; cues += 1) {
    videos.push(...generatedChannelByHandle(`@mixed-${CHANNEL_VIDEOS}x${cues}`).uploads());
  }
  return videos.slice(0, count);
}
