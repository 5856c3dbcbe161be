import { join } from 'node:path';
import { PROJECT } from '../processes.mjs';

const MINUTE_MS = 60_000;
const DEADLINE_MS = 45_000;
/** The videos of a slice of a job, and of those the videos that the service reads at a time. */
const SLICE_VIDEOS = 25;
const CONCURRENCY = 24;
/** The pauses of a job whose slice was refused as a whole, and of a video that failed for another passing reason. */
const BLOCKED_FIRST_MS = 30_000;
const BLOCKED_MAX_MS = 15 * MINUTE_MS;
const AGAIN_MS = 10 * MINUTE_MS;
const CALL_VIDEOS = 10;
const CUES = 4;

/**
 * An archive as a job reads it, with the rules of its slices: what the pace holds back is read when the pace says so, what is
 * refused after a pause, the first time with a single video. Meanwhile callers ask for ten videos at regular times.
 *
 * @param background whether the job yields to the callers
 * @returns how long it took, and how the videos of the job and of the calls ended each time they were asked for
 */
export async function runArchive(time, platform, { videos, background = true, callMinutes = null }) {
  const { channelByPath } = await import(join(PROJECT, 'dist-tools/test/fake-youtube/catalogue/catalogue.js'));
  const idOf = (handle) => channelByPath(`/${handle}`).id;
  const reading = { running: true };
  const uploads = await listAll(platform, idOf(`@archive-${videos}x${CUES}`), background);
  const listedMs = time.nowMs;
  const calls = callMinutes === null ? null : callEvery(time, platform, channelByPath, callMinutes, reading);
  const codes = await readAll(time, platform, uploads, background);
  const readMs = time.nowMs;
  reading.running = false;
  return { listed: uploads.length, listedMs, readMs, codes, calls: await calls };
}

async function listAll(platform, channelId, background) {
  const uploads = [];
  let next;
  do {
    const page = await platform.listUploadsPage(channelId, next, contextOf(background).context);
    uploads.push(...page.uploads);
    next = page.next ?? undefined;
  } while (next !== undefined);
  return uploads;
}

async function readAll(time, platform, uploads, background) {
  const codes = {};
  let pending = uploads.flatMap(({ videoId, failure }) => (failure === null ? [{ videoId, notBeforeMs: 0 }] : []));
  let blockedTimes = 0;
  while (pending.length > 0) {
    const due = pending.filter(({ notBeforeMs }) => notBeforeMs <= time.nowMs);
    if (due.length === 0) {
      await time.wait(Math.min(...pending.map(({ notBeforeMs }) => notBeforeMs)) - time.nowMs);
      continue;
    }
    const slice = due.slice(0, blockedTimes > 0 ? 1 : SLICE_VIDEOS);
    const startedAtMs = time.nowMs;
    const ends = await readSlice(platform, slice, background);
    const settled = new Set();
    const waitsMs = [];
    let [blocked, served] = [false, false];
    for (const [entry, end] of ends) {
      const code = end.ok ? 'ok' : end.failure.code;
      codes[code] = (codes[code] ?? 0) + 1;
      if (!code.startsWith('upstream_')) settled.add(entry);
      if (end.ok) served = true;
      if (code === 'upstream_blocked') blocked = true;
      else if (code === 'upstream_busy') waitsMs.push((end.failure.retryAfterSeconds ?? 1) * 1_000);
      else if (code.startsWith('upstream_')) entry.notBeforeMs = time.nowMs + AGAIN_MS;
    }
    pending = pending.filter((entry) => !settled.has(entry));
    if (served) blockedTimes = 0;
    if (blocked && !served) {
      await time.wait(Math.min(BLOCKED_MAX_MS, BLOCKED_FIRST_MS * 2 ** blockedTimes));
      blockedTimes += 1;
    } else if (waitsMs.length > 0) await time.wait(Math.max(1_000, Math.min(...waitsMs) - (time.nowMs - startedAtMs)));
  }
  return codes;
}

async function readSlice(platform, slice, background) {
  const { context, end } = contextOf(background);
  const ends = new Map();
  const remaining = slice.values();
  const worker = async () => {
    for (const entry of remaining) ends.set(entry, await read(platform, entry.videoId, context));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  end();
  return ends;
}

async function callEvery(time, platform, channelByPath, minutes, reading) {
  const waiting = [];
  const ends = {};
  const call = async (videos) => {
    const { context, end } = contextOf(false);
    const outcomes = await Promise.all(videos.map(({ id }) => read(platform, id, context)));
    end();
    for (const outcome of outcomes) {
      const code = outcome.ok ? 'ok' : outcome.failure.code;
      ends[code] = (ends[code] ?? 0) + 1;
    }
  };
  for (let number = 1; reading.running; number += 1) {
    await time.wait(minutes * MINUTE_MS);
    if (reading.running) waiting.push(call(channelByPath(`/@bench-${CALL_VIDEOS}x${100 + number}`).uploads()));
  }
  await Promise.all(waiting);
  return ends;
}

async function read(platform, videoId, context) {
  return platform.readVideo(videoId, [], context).catch(() => ({ ok: false, failure: { code: 'upstream_timeout' } }));
}

function contextOf(background) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error('deadline')), DEADLINE_MS);
  const deadlineAtMs = performance.now() + DEADLINE_MS;
  const context = { signal: controller.signal, deadlineAtMs, fairnessKey: {}, background };
  return { context, end: () => clearTimeout(timer) };
}
