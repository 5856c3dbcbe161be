import { Injectable } from '@nestjs/common';
import type { RequestContext } from '../http/server/request-context.js';
import { FeedLinksService, type FoundFeedLink } from '../organizations/feed-links.service.js';
import { CallRate } from '../rate-limit/call-rate.js';
import { CallsInFlight } from '../rate-limit/calls-in-flight.js';

/** Lets in who reads a feed, by the token in its address. Instead of the guards of calls, because feed readers send no header. */
@Injectable()
export class FeedAccess {
  constructor(
    private readonly links: FeedLinksService,
    private readonly rate: CallRate,
    private readonly calls: CallsInFlight,
  ) {}

  /**
   * The reader is from then on a caller of the organization that may only read.
   *
   * @param what has a count of its own
   * @throws FeedNotFoundError, FeedRateExceededError, ConcurrencyLimitReachedError, ServiceAtCapacityError
   */
  async enter(context: RequestContext, token: string, what: 'feed' | 'transcript'): Promise<FoundFeedLink> {
    const link = await this.links.find(token);
    const { id, organization } = link;
    context.caller = { keyId: id, kind: 'key', scopes: ['read'], organization };
    Object.assign(context.log, { organizationId: organization.id, feedLinkId: id });
    await this.rate.countFeedRead(`${what}:${id}`);
    this.calls.acquire(context.caller, context.ended());
    return link;
  }
}
