import { Injectable } from '@nestjs/common';
import { type Asked, askControl, concludeExperiment } from '../egress/control.js';
import type { Egress } from '../egress/egress.js';
import type { ControlEnd } from '../egress/egress-pool.js';
import type { Finding } from '../egress/examination.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { readChannelPage } from './channel-page.js';

/** Channels that are unlikely to end: that of the platform's first video (jawed, 2005), and YouTube's own. */
const CONTROL_CHANNELS = ['UC4QobU6STFB0P71PMvOGN5A', 'UCBR8-60-B28hp2BmDPdntcQ'] as const;

/** The control experiment for lists: an address is refused when the pages of two channels that exist are. */
@Injectable()
export class ChannelControl {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Settles a doubt about the channel or list of an attempt: see `Examination.settle`. */
  settle({ egress, attempt, context }: RequestScope): Promise<Finding> {
    const { channel } = egress.examinations;
    channel.doubt('list', attempt.subject, 'WEB');
    const doubt = { kind: 'list', client: null, sinceMs: performance.now() } as const;
    return channel.settle(doubt, context, () => this.experiment(egress, attempt.subject));
  }

  /** At the end of a pause: one control. */
  async probe(egress: Egress): Promise<ControlEnd> {
    return (await this.ask(egress, CONTROL_CHANNELS[0])).end;
  }

  private async experiment(egress: Egress, channelId: string): Promise<Finding> {
    const first = await this.ask(egress, CONTROL_CHANNELS[0]);
    const last = first.end === 'refused' ? await this.ask(egress, CONTROL_CHANNELS[1]) : first;
    const finding = last.end === 'served' ? 'served' : last.end === 'refused' ? 'address-refused' : 'unknown';
    const experiment = { use: 'channel', kind: 'list', client: 'WEB', subject: channelId, finding } as const;
    return concludeExperiment(egress, { ...experiment, controls: [first, last] }, this.metrics);
  }

  private ask(egress: Egress, channelId: string): Promise<Asked> {
    const payload = { browseId: channelId };
    const query = { kind: 'channel', client: 'WEB', path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
    return askControl(egress, channelId, async (scope) => {
      const response = await this.innertube.query(query, readChannelPage, scope);
      // Any page of the platform is an answer.
      if (response.kind !== 'parsed') return response;
      egress.examinations.channel.served('list', 'WEB', scope.attempt.sentAtMs);
      return 'served';
    });
  }
}
