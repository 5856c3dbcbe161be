import { visitorDataOf } from './calls/response-context.js';
import type { Client } from './catalogue/model.js';
import type { Incoming } from './incoming-request.js';

interface IssuedVisitor {
  client: Client | null;
  egress: string;
  byBotCheck: boolean;
}

/** The visitor data that the fake YouTube has issued, and for whom. A reset does not withdraw it. */
export class Visitors {
  private readonly issued = new Map<string, IssuedVisitor>();
  private count = 0;

  /** The visitor data of a response: the request's own, or new data for a request without any. */
  dataFor(incoming: Incoming): string {
    return incoming.visitorData ?? this.issue(incoming);
  }

  /** Issues new visitor data for the client and the address of a request. */
  issue({ client, egress }: Incoming, byBotCheck = false): string {
    this.count += 1;
    const visitorData = visitorDataOf(client, `visitor ${this.count}`);
    this.issued.set(visitorData, { client, egress, byBotCheck });
    return visitorData;
  }

  /** Whether the visitor data of a request was issued here, for this client and this address. */
  isIssued(incoming: Incoming): boolean {
    return this.find(incoming) !== undefined;
  }

  /** Whether the visitor data of a request came with a bot check. */
  isFromBotCheck(incoming: Incoming): boolean {
    return this.find(incoming)?.byBotCheck === true;
  }

  private find({ visitorData, client, egress }: Incoming): IssuedVisitor | undefined {
    const issued = visitorData === null ? undefined : this.issued.get(visitorData);
    if (!issued || issued.egress !== egress) return undefined;
    // The reel is an endpoint of the ANDROID client.
    return appOf(issued.client) === appOf(client) ? issued : undefined;
  }
}

function appOf(client: Client | null): Client | null {
  return client === 'ANDROID_REEL' ? 'ANDROID' : client;
}
