import { Logger } from '@nestjs/common';
import type { Request } from 'express';
import { requestContext } from '../../http/request-context.js';

/** What was done, so that an operator can search for it. */
export type AdminAction =
  | 'organization_created'
  | 'organization_changed'
  | 'organization_deleted'
  | 'key_issued'
  | 'key_rotated'
  | 'key_revoked'
  | 'usage_pruned';

const logger = new Logger('Admin');

/** One line for a change that was made over HTTP: what, on which, in which request, from which address. */
export function logChange(request: Request, action: AdminAction, facts: Readonly<Record<string, unknown>>): void {
  const { requestId } = requestContext(request);
  logger.log({ event: 'admin_change', action, ...facts, requestId, address: request.ip });
}
