import type { ChannelTranscriptsClient } from '@channel-transcripts/client';

/** Reports that a job or a subscription waits for quota, once for each pause, also without a terminal. */
export class QuotaNotice {
  private isWaiting = false;

  constructor(
    private readonly client: ChannelTranscriptsClient,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {}

  async update({ reason }: { reason: string | null }): Promise<void> {
    const wasWaiting = this.isWaiting;
    this.isWaiting = reason === 'plan_limit_exceeded';
    if (!this.isWaiting || wasWaiting) return;
    const { organization, limit, period } = await this.client.usage();
    const until = `until ${period.end} or until \`org set-limit ${organization}\` raises it`;
    this.report(`The monthly limit of ${limit} transcripts is used up. Waiting ${until}.`, true);
  }
}
