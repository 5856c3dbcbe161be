import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryWithDeadline } from '../database/query-with-deadline.js';
import { FEED_TOKEN_PREFIX } from '../domain/api-key-text.js';
import type { Actor, Caller } from '../domain/caller.js';
import { fixedError, InvalidApiKeyError } from '../domain/errors.js';
import { generateKey, hashKey, isWellFormedKey } from './api-key.js';

/** Of one organization. */
export const FEED_LINKS_MAX = 100;
export const FEED_LINK_ID = /^fln_[0-9a-f]{32}$/;

/** The address of a feed for readers that send no header. The hash by which it is found is in the table only. */
export interface FeedLink {
  id: string;
  /** The ID of the subscription whose entries it has; null for those of all. */
  subscription: string | null;
  /** Only entries with this label, as `name:value`. */
  label: string | null;
  createdAt: Date;
}

export interface FoundFeedLink extends FeedLink {
  organization: Caller['organization'];
}

export class FeedLinkNotFoundError extends fixedError(
  'not_found',
  'Feed link not found. List those of your organization with GET /feed-links.',
) {}

/** Nothing tells an address that was revoked from one that never was. */
export class FeedNotFoundError extends fixedError(
  'not_found',
  'Feed not found. Its address is incomplete, or was revoked. POST /feed-links creates another one.',
) {}

export class TooManyFeedLinksError extends fixedError(
  'conflict',
  `Your organization has ${FEED_LINKS_MAX} feed links, which is the maximum. Delete one first.`,
) {}

type Outcome = 'created' | 'unknown_subscription' | 'too_many' | 'no_organization';

const CREATE = 'SELECT feed_link_create($1, $2, $3, $4, $5, $6, $7) AS outcome';

const COLUMNS = 'link.id, link.subscription_id AS subscription, link.label, link.created_at AS "createdAt"';

const LIST = `SELECT ${COLUMNS} FROM feed_links link WHERE organization_id = $1 ORDER BY created_at, id`;

const DELETE = `
  DELETE FROM feed_links WHERE id = $1 AND organization_id = $2
    RETURNING id, audit_record($3, 'feed_link.deleted', organization_id, id,
      jsonb_build_object('subscription', subscription_id, 'label', label), NULL)`;

/** Not without its subscription: a reader then learns that nothing follows. */
const FIND = `
  SELECT ${COLUMNS}, json_build_object('id', organization.id, 'name', organization.name, 'plan', organization.plan) AS organization
    FROM feed_links link JOIN organizations organization ON organization.id = link.organization_id AND deleted_at IS NULL
    WHERE link.hash = $1 AND (link.subscription_id IS NULL
      OR EXISTS (SELECT FROM jobs WHERE id = link.subscription_id AND jobs.deleted_at IS NULL))`;

/** Creates, lists, deletes and finds the addresses of feeds. */
@Injectable()
export class FeedLinksService {
  constructor(private readonly database: DataSource) {}

  /**
   * @returns the token of the new address, which is not stored, or undefined without such a subscription
   * @throws TooManyFeedLinksError | InvalidApiKeyError when the organization was deleted
   */
  async create(
    organizationId: string,
    { subscription, label }: { subscription?: string | undefined; label?: string | undefined },
    actor: Actor,
  ): Promise<{ id: string; token: string } | undefined> {
    const id = `fln_${randomUUID().replaceAll('-', '')}`;
    const token = generateKey(FEED_TOKEN_PREFIX);
    const values = [id, organizationId, hashKey(token), subscription ?? null, label ?? null, FEED_LINKS_MAX, actor];
    const [row] = await queryWithDeadline<[{ outcome: Outcome }]>(this.database, CREATE, values, organizationId);
    if (row.outcome === 'no_organization') throw new InvalidApiKeyError('revoked');
    if (row.outcome === 'too_many') throw new TooManyFeedLinksError();
    return row.outcome === 'created' ? { id, token } : undefined;
  }

  /** Lists those of an organization, oldest first. */
  list(organizationId: string): Promise<FeedLink[]> {
    return queryWithDeadline(this.database, LIST, [organizationId]);
  }

  /** Its address is 404 from the next read on. @throws FeedLinkNotFoundError */
  async delete(organizationId: string, id: string, actor: Actor): Promise<void> {
    const [deleted] = FEED_LINK_ID.test(id)
      ? await queryWithDeadline<[object[], number]>(this.database, DELETE, [id, organizationId, actor])
      : [[]];
    if (deleted.length === 0) throw new FeedLinkNotFoundError();
  }

  /** Finds the link of a token, of which a malformed one is refused without a query. @throws FeedNotFoundError */
  async find(token: string): Promise<FoundFeedLink> {
    const [found] = isWellFormedKey(token, FEED_TOKEN_PREFIX)
      ? await queryWithDeadline<FoundFeedLink[]>(this.database, FIND, [hashKey(token)])
      : [];
    if (!found) throw new FeedNotFoundError();
    return found;
  }
}
