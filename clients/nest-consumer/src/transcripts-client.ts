import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import type { Observable } from 'rxjs';
import type { TranscriptsEvent } from './answer.js';

/** What a consumer asks for. */
export interface Question {
  apiKey: string;
  /** A handle, a channel ID or the URL of a channel. */
  id: string;
  limit?: number;
  languages?: string[];
  /** Comes back in errors and in the log of the service. */
  requestId?: string;
}

/** The token of the connection to the service. */
export const CONNECTION = Symbol('connection');

/** Asks the service, over whichever transport the connection has. */
@Injectable()
export class TranscriptsClient implements OnApplicationShutdown {
  constructor(@Inject(CONNECTION) private readonly connection: ClientProxy) {}

  /** The events of one call, as they come; an error of the stream is `{ error: { code, message, … } }`. */
  request(question: Question): Observable<TranscriptsEvent> {
    return this.connection.send<TranscriptsEvent, Question>('channels.transcripts', question);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connection.close();
  }
}
