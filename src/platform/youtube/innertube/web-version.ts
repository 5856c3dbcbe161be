import { Injectable } from '@nestjs/common';
import { parseJson } from '../../../domain/parse-json.js';
import { type FailedResponse, isJsonError, type UpstreamResponse } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { asString, at } from '../response-parsing.js';
import { CONFIGURED, type VersionForm } from './clients.js';

/** What an experiment sends, through the egress of the request that was refused. Never rejects. */
export interface VersionProbes {
  /** Looks up a channel that is known to exist. */
  control: (form: VersionForm) => Promise<UpstreamResponse>;
  /** The text of `/sw.js_data`; null when it cannot be read. */
  published: () => Promise<string | null>;
}

/** A response with 400 concerns what was requested, or another form is served. Else what the control got. */
type VersionVerdict = 'served' | 'replaced' | FailedResponse;

const WITHOUT_HEADERS: VersionForm = { version: null, headers: false };

/** When the platform is asked again for its version. */
const PUBLISHED_MS = 3_600_000;
/** When a control is asked again that was refused whatever the version. */
const REFUSED_MS = 60_000;

/**
 * The version of WEB, which reads all lists, names and channels. The platform ends old versions in waves, with 400 for each of
 * these requests that has the version in its headers (seen on 2026-07-22), as for one that is invalid. An experiment tells the
 * two apart: a channel that exists is requested with the version, without its headers, and with the version that the platform
 * uses itself. What is served is used from then on.
 */
@Injectable()
export class WebVersion {
  /** Whether the platform does not serve the version of the release or the operator. */
  retired = false;
  private current = CONFIGURED;
  private servedAtMs = -Infinity;
  private experiment: Promise<VersionVerdict> | undefined;
  private refused: { verdict: FailedResponse; untilMs: number } | undefined;
  private published: { version: string | null; untilMs: number } | undefined;

  /** What is sent. */
  get form(): VersionForm {
    return this.current;
  }

  /** A request with a form was served. */
  served(form: VersionForm): void {
    if (form === this.current) this.servedAtMs = performance.now();
  }

  /**
   * Finds out whom the 400 of a request concerns. Concurrent callers share one experiment, which continues when one of them
   * disconnects.
   *
   * @param form what the request had
   */
  async examine(form: VersionForm, sentAtMs: number, probes: VersionProbes): Promise<VersionVerdict> {
    if (form !== this.current) return 'replaced';
    if (this.servedAtMs >= sentAtMs) return 'served';
    if (this.refused && performance.now() < this.refused.untilMs) return this.refused.verdict;
    this.experiment ??= this.ask(probes).finally(() => (this.experiment = undefined));
    return this.experiment;
  }

  private async ask({ control, published }: VersionProbes): Promise<VersionVerdict> {
    const response = await control(this.current);
    if (response.kind === 'ok' || isServed(response)) {
      this.served(this.current);
      return 'served';
    }
    if (!isJsonError(response, 400)) return response;
    const isServedWithout = isServed(await control(WITHOUT_HEADERS));
    const version = await this.currentVersion(published);
    const renewed: VersionForm = { version, headers: true };
    const isRenewed = version !== null && isServed(await control(renewed));
    if (!isRenewed && !isServedWithout) {
      const verdict: FailedResponse = { kind: 'unreadable', expected: 'a version of WEB that the platform serves' };
      this.refused = { verdict, untilMs: performance.now() + REFUSED_MS };
      return verdict;
    }
    this.retired = true;
    this.current = isRenewed ? renewed : WITHOUT_HEADERS;
    report('warn', 'youtube_client_retired', { client: 'WEB', replacedBy: isRenewed ? version : 'no version headers' });
    return 'replaced';
  }

  /** The version that the platform uses itself, as it stated it within the last hour; null when it did not. */
  private async currentVersion(read: VersionProbes['published']): Promise<string | null> {
    const nowMs = performance.now();
    if (!this.published || nowMs >= this.published.untilMs) {
      // Set before it is read, so that it is not requested more often.
      this.published = { version: null, untilMs: nowMs + PUBLISHED_MS };
      const text = await read();
      this.published.version = text === null ? null : readPublishedVersion(text);
    }
    return this.published.version;
  }
}

/** Whether a control has passed: a channel that is not found was looked up too. */
function isServed(response: UpstreamResponse): boolean {
  return response.kind === 'ok' || (response.kind === 'http-error' && response.status === 404);
}

/** Of WEB: the day of the release in it. */
const VERSION = /^2\.(\d{4})(\d\d)(\d\d)\.\d{2}\.\d{2}$/;
/** The first day of a version that is plausible. */
const DAY_MIN = Date.UTC(2025, 0, 1);
/** The clock of the machine can be behind. */
const DAYS_AHEAD_MS = 30 * 86_400_000;

/**
 * The version of WEB in `/sw.js_data`: JSON after a line that is none, an array whose place of the version is that of maintained
 * clients (youtubei.js, November 2026). When it is not there, the first text with its form. Null when there is none that is
 * plausible.
 */
export function readPublishedVersion(text: string, nowMs = Date.now()): string | null {
  const json = parseJson(text.replace(/^\)\]\}'\s*/, ''));
  const stated = asString(at(json, 0, 2, 0, 0, 16));
  const others = text.match(/\b2\.\d{8}\.\d{2}\.\d{2}\b/g) ?? [];
  return [stated, ...others].find((version) => version !== null && isPlausible(version, nowMs)) ?? null;
}

function isPlausible(version: string, nowMs: number): boolean {
  const [, year, month, day] = VERSION.exec(version) ?? [];
  const dayMs = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  return dayMs >= DAY_MIN && dayMs <= nowMs + DAYS_AHEAD_MS;
}
