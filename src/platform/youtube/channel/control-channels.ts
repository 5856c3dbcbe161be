import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import type { Controls } from '../egress/experiment.js';
import type { BudgetKind } from '../egress/line.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { CHANNEL_FIELDS } from '../innertube/field-masks.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { readChannelPage } from './channel-page.js';

/** Channels that are unlikely to end: that of the platform's first video (jawed, 2005), and YouTube's own. */
const CONTROL_CHANNELS = ['UC4QobU6STFB0P71PMvOGN5A', 'UCBR8-60-B28hp2BmDPdntcQ'] as const;

/** The channels that are known to be served, as controls for lists, which WEB alone reads. */
@Injectable()
export class ControlChannels implements Controls {
  constructor(private readonly innertube: InnertubeClient) {}

  clients(): readonly YoutubeClient[] {
    return ['WEB'];
  }

  ids(): readonly string[] {
    return CONTROL_CHANNELS;
  }

  async ask(channelId: string, client: YoutubeClient, _kind: BudgetKind, scope: RequestScope) {
    const payload = { browseId: channelId };
    const query = { kind: 'channel', client, path: 'browse', payload, fields: CHANNEL_FIELDS } as const;
    const response = await this.innertube.query(query, readChannelPage, scope);
    // Any page of the platform is an answer.
    if (response.kind !== 'parsed') return response;
    scope.egress.uses.channel.served('list', client, scope.attempt.sentAtMs);
    return 'served' as const;
  }

  rest(): void {
    // There is no other client.
  }
}
