import { Injectable } from '@nestjs/common';
import { Attempt } from '../egress/attempt.js';
import type { Egress } from '../egress/egress.js';
import type { ControlEnd } from '../egress/egress-pool.js';
import type { Finding } from '../egress/examination.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { RetryBudget } from '../egress/retry.js';
import { isUnreached } from '../egress/upstream-response.js';
import { report } from '../event-log.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { readChannelPage } from './channel-page.js';

/** Channels that are unlikely to end: that of the platform's first video (jawed, 2005), and YouTube's own. */
const CONTROL_CHANNELS = ['UC4QobU6STFB0P71PMvOGN5A', 'UCBR8-60-B28hp2BmDPdntcQ'] as const;
/** Longest wait for a control. */
const TIMEOUT_MS = 20_000;

/** The control experiment for lists: an address is refused when the pages of two channels that exist are. */
@Injectable()
export class ChannelControl {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Settles a doubt about a list: see `Examination.settle`. @param sinceMs when the doubt arose */
  settle({ egress, context }: RequestScope, sinceMs: number): Promise<Finding> {
    const doubt = { kind: 'list', client: null, sinceMs } as const;
    return egress.examinations.channel.settle(doubt, context, () => this.experiment(egress));
  }

  /** At the end of a pause: one control. */
  async probe(egress: Egress): Promise<ControlEnd> {
    return this.ask(egress, CONTROL_CHANNELS[0]);
  }

  private async experiment(egress: Egress): Promise<Finding> {
    const first = await this.ask(egress, CONTROL_CHANNELS[0]);
    const end = first === 'refused' ? await this.ask(egress, CONTROL_CHANNELS[1]) : first;
    const finding: Finding = end === 'served' ? 'served' : end === 'refused' ? 'address-refused' : 'unknown';
    if (finding === 'address-refused' && !egress.gateway) egress.gates.channel.pause('list', null);
    this.metrics.notice('control', 'WEB', finding);
    const fields = { exit: egress.name, use: 'channel', kind: 'list', client: 'WEB', finding };
    report(finding === 'served' ? 'log' : 'warn', 'youtube_control_asked', fields);
    return finding;
  }

  private async ask(egress: Egress, channelId: string): Promise<ControlEnd> {
    const context = {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      deadlineAtMs: performance.now() + TIMEOUT_MS,
      organizationId: '',
      fairnessKey: {},
    };
    const attempt = new Attempt(channelId, 'control');
    const scope = { egress, attempt, context, budget: new RetryBudget(0), hasAlternative: false, attempts: 1 };
    const payload = { browseId: channelId };
    const call = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
    try {
      const response = await this.innertube.query(call, readChannelPage, scope);
      if (response.kind === 'blocked') return 'refused';
      // Any page of the platform is an answer.
      if (response.kind !== 'parsed') return isUnreached(response) ? 'unreached' : 'unknown';
      egress.examinations.channel.served('list', 'WEB', attempt.sentAtMs);
      return 'served';
    } catch {
      // The control took too long.
      return 'unreached';
    }
  }
}
