import type { OutgoingRequest, RawResponse } from './http-transport.js';

/** One request and its response, as they were sent and received. */
export interface Exchange {
  /** As in `PendingRequest`. */
  kind: string;
  client: string;
  outgoing: OutgoingRequest;
  response: RawResponse;
}

/** Receives every exchange with the platform. Only the doctor provides one. */
export abstract class ExchangeListener {
  abstract exchanged(exchange: Exchange): void;
}
