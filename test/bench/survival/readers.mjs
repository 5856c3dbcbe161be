import { join } from 'node:path';
import { PROJECT } from '../processes.mjs';

const load = (file) => import(join(PROJECT, 'dist/modules', file));

/** What users of the open libraries do when they are refused: through a gateway ten tries at once, else three a second apart. */
const LOOP = { gatewayTries: 10, tries: 3, pauseMs: 1_000, atOnce: 16, clientName: 'ANDROID' };

/** The service's own adapter, with the egresses of a scenario. @returns read(videoId, context) */
async function openService(proxyUrls) {
  await import('reflect-metadata');
  const { NestFactory } = await import('@nestjs/core');
  const { Logger } = await import('@nestjs/common');
  const { ConfigModule } = await load('config/config.module.js');
  const { Environment } = await load('config/environment.js');
  const { YoutubeModule } = await load('platform/youtube/youtube.module.js');
  const { YoutubePlatform } = await load('platform/youtube/youtube-platform.js');
  const values = { UPSTREAM_PROXY_URL: proxyUrls };
  const module = { module: YoutubeModule, imports: [ConfigModule.forRoot(Object.assign(new Environment(), values))] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  Logger.overrideLogger(false);
  const platform = app.get(YoutubePlatform);
  return (videoId, context) => platform.readVideo(videoId, [], context);
}

/** Several replicas of the service, which share the egresses and nothing else; each call is for one of them, in turn. */
export async function openReplicas(count, proxyUrls) {
  const replicas = [];
  while (replicas.length < count) replicas.push(await openService(proxyUrls));
  const replicaOf = new WeakMap();
  let calls = 0;
  return (videoId, context) => {
    const { fairnessKey } = context;
    if (!replicaOf.has(fairnessKey)) replicaOf.set(fairnessKey, replicas[calls++ % count]);
    return replicaOf.get(fairnessKey)(videoId, context);
  };
}

/** A plain loop over the same clients' requests. */
export function openLoop(platform, proxyUrls, gateway) {
  const most = gateway ? LOOP.gatewayTries : LOOP.tries;
  const egresses = proxyUrls.map((url) => platform.addressBehind(url.replace('-session-{session}', '')));
  const queue = [];
  let [running, turn] = [0, 0];
  const next = () => {
    if (running >= LOOP.atOnce || queue.length === 0) return;
    running += 1;
    queue.shift()();
  };
  const slot = () => new Promise((resolve) => (queue.push(resolve), next()));
  const post = async (path, body, egress) => {
    const headers = { 'content-type': 'application/json' };
    const sent = { method: 'POST', path, headers, body: JSON.stringify(body), egress };
    const { status, bytes } = await platform.exchange(sent);
    return status === 200 ? JSON.parse(bytes.toString()) : undefined;
  };
  const attempt = async (videoId) => {
    const egress = egresses[(turn += 1) % egresses.length]();
    const context = { client: { clientName: LOOP.clientName, clientVersion: '21.26.364' } };
    const fields = encodeURIComponent(
      'playabilityStatus,captions/playerCaptionsTracklistRenderer/captionTracks/baseUrl',
    );
    const player = await post(`/youtubei/v1/player?$fields=${fields}`, { videoId, context }, egress);
    const { status, reason = '' } = player?.playabilityStatus ?? {};
    if (!player || /not a bot/.test(reason)) return 'refused';
    if (status !== 'OK') return codeOf(status, reason);
    const [track] = player.captions?.playerCaptionsTracklistRenderer.captionTracks ?? [];
    if (!track) return 'transcript_unavailable';
    // As the libraries do, which read the format that is sent without it.
    const { pathname, search } = new URL(track.baseUrl.replace('&fmt=srv3', ''));
    const text = await platform.exchange({ method: 'GET', path: pathname + search, headers: {}, body: '', egress });
    return text.status === 200 ? 'ok' : 'refused';
  };
  return async (videoId, { deadlineAtMs }) => {
    await slot();
    try {
      for (let tries = 0; tries < most; tries += 1) {
        const end = performance.now() < deadlineAtMs ? await attempt(videoId) : 'upstream_timeout';
        if (end !== 'refused') return outcome(end);
        if (!gateway) await new Promise((resolve) => setTimeout(resolve, LOOP.pauseMs));
      }
      return outcome('upstream_blocked');
    } finally {
      running -= 1;
      next();
    }
  };
}

/** As the libraries tell the reasons apart. */
function codeOf(status, reason) {
  if (/private/.test(reason)) return 'video_private';
  if (/members/.test(reason)) return 'video_members_only';
  return /inappropriate/.test(reason) ? 'video_age_restricted' : 'video_unavailable';
}

function outcome(end) {
  return end === 'ok' ? { ok: true } : { ok: false, failure: { code: end } };
}
