import type { ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { bearerToken } from '../http/bearer-token.js';
import { requestContext } from '../http/request-context.js';
import { onResponseEnd } from '../http/response-end.js';

/** What the gates need to know of a call, whichever way it came. */
export interface InboundCall {
  /** What its caller is remembered by. */
  readonly subject: object;
  readonly apiKey: string | undefined;
  /** Where the key belongs, for a caller who sent none. */
  readonly credentialLocation: string;
  readonly address: string | undefined;
  /** Added to its line in the log. */
  readonly log: Record<string, unknown>;
  /** Resolves when the answer is over, sent or not. */
  ended(): Promise<void>;
  /** Tells the caller how it stands with a limit, where the way has room for that. */
  setHeader(name: string, value: string | number): void;
}

const messages = new WeakMap<object, InboundCall>();

/** Makes a call that came as a message known to the gates, by the object that Nest hands them as its context. */
export function setInboundCall(messageContext: object, call: InboundCall): void {
  messages.set(messageContext, call);
}

/** What the gates see of a call. Throws for a message that nobody made known, so that it fails closed. */
export function inboundCallOf(context: ExecutionContext): InboundCall {
  if (context.getType() === 'http') {
    const http = context.switchToHttp();
    return new HttpCall(http.getRequest<Request>(), http.getResponse<Response>());
  }
  const call = messages.get(context.switchToRpc().getContext<object>());
  if (!call) throw new Error('The message is unknown: it came past the hook that opens its exchange.');
  return call;
}

class HttpCall implements InboundCall {
  readonly credentialLocation = 'the header "Authorization: Bearer <API_KEY>"';

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
