import type { RandomSource } from '../../harness/random.js';
import { channelId, hostileId, videoId } from './targets.js';

/**
 * A message for `/mcp`, mostly a call of a tool: the OpenAPI document describes its envelope only.
 *
 * @param canary the address in hostile arguments
 * @param jobs IDs of jobs
 */
export function mcpMessage(random: RandomSource, canary: string, jobs: readonly string[]): object {
  const channel = (): string => (random.often(0.9) ? channelId(random) : hostileId(random, canary));
  const limit = (): number => 1 + random.below(3);
  const tool = (name: string, own: object = {}): object => {
    const other = random.often(0.1) ? { [random.pick(['__proto__', 'cursor', 'x'])]: random.text(8) } : {};
    return { method: 'tools/call', params: { name, arguments: { ...own, ...other } } };
  };
  const clientInfo = { name: 'chaos', version: '1' };
  const draw: readonly (() => object)[] = [
    () => ({ method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } }),
    () => ({ method: random.pick(['ping', 'tools/list', 'server/discover', 'resources/list', random.text(5)]) }),
    () => tool('get_usage'),
    () => tool('list_channel_uploads', { channel: channel(), limit: limit() }),
    () => tool('get_channel_transcripts', { channel: channel(), limit: limit() }),
    () => tool('get_video_transcript', { video: random.often(0.9) ? videoId(random) : hostileId(random, canary) }),
    () => tool('search_channel_transcripts', { channel: channel(), limit: limit(), query: random.text(2) }),
    () => tool('start_archive_job', { channel: channel() }),
    () => tool('get_job', { id: jobs.length > 0 ? random.pick(jobs) : random.text(20) }),
    () => tool(random.text(12)),
  ];
  const message = { jsonrpc: '2.0', ...random.pick(draw)() };
  // Without an ID it is a notification.
  return random.often(0.9) ? { id: random.pick([random.below(1_000), random.text(6)]), ...message } : message;
}
