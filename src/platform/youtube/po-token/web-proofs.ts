import { Inject, Injectable } from '@nestjs/common';
import type { RequestScope } from '../egress/request-pipeline.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { PoTokenProvider } from './po-token-provider.js';
import { SignatureTimestamp } from './signature-timestamp.js';

/** What WEB sends to play a video. */
export interface WebProof {
  poToken: string;
  signatureTimestamp: number;
}

/** Obtains what WEB needs in addition to the other clients. When it is not available, or without `PO_TOKEN_URL`, WEB is skipped. */
@Injectable()
export class WebProofs {
  constructor(
    @Inject(PoTokenProvider) private readonly tokens: PoTokenProvider | null,
    private readonly timestamp: SignatureTimestamp,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Null when there is none. Rejects only when the scope's signal is aborted. */
  async get(videoId: string, scope: RequestScope): Promise<WebProof | null> {
    const poToken = this.tokens && (await this.tokens.tokenFor(videoId, scope.context.signal));
    // The script is large: it is not read for a provider that is down.
    const signatureTimestamp = poToken === null ? null : await this.timestamp.get(scope);
    const outcome = poToken === null ? 'no-token' : signatureTimestamp === null ? 'no-timestamp' : 'ok';
    this.metrics.notice('web-proof', 'WEB', outcome);
    return poToken === null || signatureTimestamp === null ? null : { poToken, signatureTimestamp };
  }

  /** Forgets a proof that the platform refused. */
  reject(videoId: string, { signatureTimestamp }: WebProof): void {
    this.tokens?.reject(videoId);
    this.timestamp.reject(signatureTimestamp);
  }
}
