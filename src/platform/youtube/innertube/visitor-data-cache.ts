import { LRUCache } from 'lru-cache';
import type { YoutubeClient } from '../../../config/environment.js';
import type { Egress } from '../egress/egress.js';
import { unlessAborted } from '../../../domain/waiting.js';

/** A day is well within the lifetime of issued visitor data (months, by the cookie of the same content). */
const AGE_MAX_MS = 24 * 3_600_000;
/** When data is requested again that was refused, or of which none was issued. */
const RENEWAL_PAUSE_MS = 30_000;
/** More than there are clients. */
export const CLIENTS_MAX = 16;

/** The visitor data of one request and of its response; null where there was none. */
export interface VisitorExchange {
  sent: string | null;
  offered: string | null;
}

/** The country of the address to which the visitor data of an exchange was issued, as ISO 3166; null when it does not say. */
export function countryOf({ offered, sent }: VisitorExchange): string | null {
  return countryIn(offered ?? '') ?? countryIn(sent ?? '');
}

/** Visitor data is a protocol buffer whose field 6 begins with the country (recorded): `2`, a length, LF, 2, `FR`. */
function countryIn(visitorData: string): string | null {
  const bytes = Buffer.from(visitorData.replaceAll(/%3D/gi, ''), 'base64url');
  const start = bytes.findIndex((byte, at) => byte === 0x32 && bytes[at + 2] === 0x0a && bytes[at + 3] === 2);
  const country = bytes.toString('latin1', start + 4, start + 6);
  return start >= 0 && /^[A-Z]{2}$/.test(country) ? country : null;
}

interface VisitorData {
  readonly value: string | null;
}

/**
 * The visitor data of each egress and client, always issued by the platform, which accepts locally generated data less
 * readily. It is requested once and cached; while none is issued, requests send none. After a bot check, the data in its
 * response is adopted: the platform accepts it more readily than another client without (reported in August 2026).
 */
export class VisitorDataCache {
  private readonly byEgress = new WeakMap<Egress, LRUCache<YoutubeClient, VisitorData>>();

  /** @param requestIssued requests visitor data from the platform; null when it issued none. May reject. */
  constructor(
    private readonly requestIssued: (egress: Egress, client: YoutubeClient) => Promise<string | null>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * The data to send, or null to send none. Concurrent callers share one request, which continues when one of them
   * disconnects.
   */
  async get(egress: Egress, client: YoutubeClient, signal: AbortSignal): Promise<string | null> {
    const cache = this.byEgress.get(egress) ?? this.openCache(egress);
    this.byEgress.set(egress, cache);
    return (await unlessAborted(cache.fetch(client), signal))?.value ?? null;
  }

  /**
   * Replaces the data of a request that the platform refused by that of the response, or has it requested again.
   *
   * @returns whether other data is available than was sent
   */
  replace(egress: Egress, client: YoutubeClient, { sent, offered }: VisitorExchange): boolean {
    const cache = this.byEgress.get(egress);
    const current = cache?.peek(client);
    // Another request has replaced it meanwhile, or requests a replacement.
    if (!cache || !current || current.value !== sent) return current?.value !== null;
    const isOther = offered !== null && offered !== sent;
    if (isOther) cache.set(client, { value: offered });
    else cache.set(client, current, { ttl: Math.min(RENEWAL_PAUSE_MS, cache.getRemainingTTL(client)) });
    return isOther;
  }

  private openCache(egress: Egress): LRUCache<YoutubeClient, VisitorData> {
    return new LRUCache<YoutubeClient, VisitorData>({
      max: CLIENTS_MAX,
      ttl: AGE_MAX_MS,
      ttlResolution: 0,
      perf: { now: this.now },
      fetchMethod: async (client, _stale, { options }) => {
        const value = await this.requestIssued(egress, client).catch(() => null);
        if (value === null) options.ttl = RENEWAL_PAUSE_MS;
        return { value };
      },
    });
  }
}
