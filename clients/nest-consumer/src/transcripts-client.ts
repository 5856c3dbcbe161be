import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import type { Observable } from 'rxjs';

/** The parameters of a call. */
export interface TranscriptsRequest {
  apiKey: string;
  /** A handle, a channel ID or the URL of a channel. */
  id: string;
  limit?: number;
  languages?: string[];
  /** Repeated in errors and in the log of the service. */
  requestId?: string;
}

/** The fields of an event that this program uses; docs/messages.md lists all of them. */
export type TranscriptsEvent =
  | { type: 'channel'; channel: { id: string; name: string } }
  | { type: 'result'; result: { videoId: string; ok: boolean; cached: boolean; error?: { code: string } } }
  | { type: 'summary'; summary: Summary };

/** The counts of a complete response. */
export interface Summary {
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
}

/** The error of a call that the service refused. */
export interface ServiceError {
  error: { code: string; message: string; retryable: boolean; requestId: string; retryAfterSeconds?: number };
}

/** Whether an error of the stream is an error of the service, and not of the connection. */
export function isServiceError(error: unknown): error is ServiceError {
  if (typeof error !== 'object' || error === null || !('error' in error)) return false;
  const { error: reported } = error;
  return typeof reported === 'object' && reported !== null && 'code' in reported && 'message' in reported;
}

/** The injection token of the connection to the service. */
export const CONNECTION = Symbol('connection');

/** Calls the service, over TCP or NATS. */
@Injectable()
export class TranscriptsClient implements OnApplicationShutdown {
  constructor(@Inject(CONNECTION) private readonly connection: ClientProxy) {}

  /** Returns the events of one call as they arrive. The stream fails with a `ServiceError` when the call is refused. */
  request(request: TranscriptsRequest): Observable<TranscriptsEvent> {
    return this.connection.send<TranscriptsEvent, TranscriptsRequest>('channels.transcripts', request);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connection.close();
  }
}
