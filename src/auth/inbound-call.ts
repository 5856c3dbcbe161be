import type { ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { bearerToken } from '../http/bearer-token.js';
import { requestContext } from '../http/request-context.js';
import { onResponseEnd } from '../http/response-end.js';

/** What the gates need to know of a call, whichever way it came. */
export interface Exchange {
  /** What its caller is remembered by. */
  readonly subject: object;
  readonly apiKey: string | undefined;
  /** Where the key belongs, for a caller who sent none. */
  readonly keyPlace: string;
  readonly address: string | undefined;
  /** Added to its line in the log. */
  readonly log: Record<string, unknown>;
  /** Resolves when the answer is over, sent or not. */
  ended(): Promise<void>;
  /** Tells the caller how it stands with a limit, where the way has room for that. */
  setHeader(name: string, value: string | number): void;
}

const messages = new WeakMap<object, Exchange>();

/** Makes a call that came as a message known to the gates, by the object that Nest hands them as its context. */
export function setExchange(messageContext: object, exchange: Exchange): void {
  messages.set(messageContext, exchange);
}

/** What the gates see of a call. Throws for a message that nobody made known, so that it fails closed. */
export function exchangeOf(context: ExecutionContext): Exchange {
  if (context.getType() === 'http') {
    const http = context.switchToHttp();
    return new HttpExchange(http.getRequest<Request>(), http.getResponse<Response>());
  }
  const exchange = messages.get(context.switchToRpc().getContext<object>());
  if (!exchange) throw new Error('The message is unknown: it came past the hook that opens its exchange.');
  return exchange;
}

class HttpExchange implements Exchange {
  readonly keyPlace = 'the header "Authorization: Bearer <API_KEY>"';

  constructor(
    readonly subject: Request,
    private readonly response: Response,
  ) {}

  get apiKey(): string | undefined {
    return bearerToken(this.subject);
  }

  get address(): string | undefined {
    return this.subject.ip;
  }

  get log(): Record<string, unknown> {
    return requestContext(this.subject).log;
  }

  ended(): Promise<void> {
    return new Promise((resolve) => onResponseEnd(this.response, resolve));
  }

  setHeader(name: string, value: string | number): void {
    this.response.setHeader(name, value);
  }
}
