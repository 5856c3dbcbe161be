/** What a consumer shows of the events; each has more, see docs/messages.md. */
export type TranscriptsEvent =
  | { type: 'channel'; channel: { id: string; name: string } }
  | { type: 'result'; result: { videoId: string; ok: boolean; cached: boolean; error?: { code: string } } }
  | { type: 'summary'; summary: Summary };

/** The counts of an answer that is complete. */
export interface Summary {
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
}

/** What a call that failed is told. */
export interface Refusal {
  error: { code: string; message: string; retryable: boolean; requestId: string; retryAfterSeconds?: number };
}

/** Whether an error of the stream is a refusal of the service, and not one of the connection. */
export function isRefusal(error: unknown): error is Refusal {
  if (typeof error !== 'object' || error === null || !('error' in error)) return false;
  const { error: reported } = error;
  return typeof reported === 'object' && reported !== null && 'code' in reported && 'message' in reported;
}
