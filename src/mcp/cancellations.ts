import type { Request } from 'express';
import { z } from 'zod';
import type { RequestContext } from '../http/request-context.js';

const cancelledSchema = z.object({
  method: z.literal('notifications/cancelled'),
  params: z.object({ requestId: z.union([z.string(), z.number()]) }),
});

/**
 * The running calls of tools in this process. A client of a 2025 revision cancels a call by a message of its own, which names
 * only the id that the client gave the call. There are no sessions, so the client is identified by its key, address and
 * user agent. When these and the id are those of several calls, none is cancelled.
 */
export class Cancellations {
  private readonly running = new Map<string, Set<AbortController>>();

  /** Registers a call until `ended` aborts; the returned signal aborts when the client cancels the call. */
  begin(request: Request, { caller }: RequestContext, id: string | number, ended: AbortSignal): AbortSignal {
    const name = nameOf(request, caller.keyId, id);
    const controller = new AbortController();
    const calls = this.running.get(name) ?? new Set();
    this.running.set(name, calls.add(controller));
    const end = (): void => {
      calls.delete(controller);
      if (calls.size === 0 && this.running.get(name) === calls) this.running.delete(name);
    };
    if (ended.aborted) end();
    else ended.addEventListener('abort', end, { once: true });
    return controller.signal;
  }

  /** Cancels the call that a message names, if it is a cancellation. */
  receive(request: Request, { caller }: RequestContext, message: object): void {
    const cancelled = cancelledSchema.safeParse(message);
    if (!cancelled.success) return;
    const calls = this.running.get(nameOf(request, caller.keyId, cancelled.data.params.requestId));
    if (calls?.size === 1) for (const controller of calls) controller.abort();
  }
}

function nameOf({ ip, headers }: Request, keyId: string, id: string | number): string {
  return JSON.stringify([keyId, ip, headers['user-agent'], id]);
}
