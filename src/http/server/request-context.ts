import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { ExecutionContext } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import type { Actor, Caller, Person } from '../../domain/caller.js';
import { createRedactor, type Redactor } from '../../observability/logging/logger.js';
import ipaddr from 'ipaddr.js';

/** Request ids accepted from callers. Anything else is replaced, because the id is echoed and logged. */
const SAFE_REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** Given as the reason, because the default one is an exception whose stack trace costs time in every call. */
const ENDED = 'The response has ended.';

/** The state of one call, over HTTP or as a message, from its arrival to the end of its response. */
export abstract class RequestContext {
  readonly startedAtMs = performance.now();
  /** Unlike the request ID never chosen by the caller. */
  readonly callId = randomUUID();
  /** Fields added to the log line of the call. Must not contain secrets. */
  readonly log: Record<string, unknown> = {};
  /** The API key or the token of the caller. */
  abstract readonly credential: string | undefined;
  /** Where the caller must put it, as named in the error for a missing one. */
  abstract readonly credentialLocation: string;
  abstract readonly address: string | undefined;
  /** Whom the token of a call to `/admin` names. */
  person: Person | null = null;
  /** Aborts when the response has ended, whether or not it was sent completely. */
  readonly responseEnd: AbortSignal;
  private readonly end = new AbortController();
  private authenticatedCaller: Caller | undefined;

  constructor(readonly requestId: string) {
    this.responseEnd = this.end.signal;
  }

  /**
   * The caller that `ApiKeyGuard` has authenticated.
   *
   * @throws Error on a route without that guard, so that the route fails closed
   */
  get caller(): Caller {
    if (!this.authenticatedCaller) throw new Error('The call is not authenticated: its route lacks ApiKeyGuard.');
    return this.authenticatedCaller;
  }

  set caller(caller: Caller) {
    this.authenticatedCaller = caller;
  }

  /** Who makes the changes of this call: its caller, or an operator when it has none. */
  get actor(): Actor {
    const { requestId, callId, address = null, person, authenticatedCaller: caller } = this;
    return { kind: caller?.kind ?? 'admin', keyId: caller?.keyId ?? null, requestId, callId, address, person };
  }

  ended(): Promise<void> {
    if (this.responseEnd.aborted) return Promise.resolve();
    return new Promise((resolve) => this.responseEnd.addEventListener('abort', () => resolve(), { once: true }));
  }

  /** Sets a response header; has no effect for a message. */
  abstract setHeader(name: string, value: string | number): void;

  protected finish(): void {
    this.end.abort(ENDED);
  }
}

const BEARER = /^Bearer (.*)$/i;

/** What follows `Bearer` in the header `Authorization`: also a text that is no token, whose mistake an error can name. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1]?.trim() || undefined;
}

class HttpRequestContext extends RequestContext {
  readonly credentialLocation = 'the header "Authorization: Bearer <API_KEY>"';
  readonly address: string | undefined;

  constructor(
    requestId: string,
    private readonly request: Request,
    private readonly response: Response,
  ) {
    super(requestId);
    // A connection that has closed has no address any more, and the line in the log needs it.
    this.address = request.ip;
    response.once('close', () => this.finish());
  }

  get credential(): string | undefined {
    return bearerToken(this.request);
  }

  setHeader(name: string, value: string | number): void {
    this.response.setHeader(name, value);
  }
}

const contexts = new WeakMap<object, RequestContext>();

/** @param subject the HTTP request, or the context object that Nest passes along with a message */
export function setRequestContext(subject: object, context: RequestContext): void {
  contexts.set(subject, context);
}

/**
 * @param subject the HTTP request, or the context object that Nest passes along with a message
 * @throws Error when the call has bypassed the middleware (HTTP) or the hook (messages) that creates its context
 */
export function requestContext(subject: object): RequestContext {
  const context = contexts.get(subject);
  if (!context) throw new Error('The call has no context: assignRequestContext or setRequestContext must run first.');
  return context;
}

/** The context of the call that a guard or an interceptor handles. */
export function requestContextOf(execution: ExecutionContext): RequestContext {
  const isHttp = execution.getType() === 'http';
  return requestContext(
    isHttp ? execution.switchToHttp().getRequest<Request>() : execution.switchToRpc().getContext<object>(),
  );
}

/** Middleware: creates the context of a request and sets the headers that every response carries. */
export function assignRequestContext(redact: Redactor) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { 'x-forwarded-for': forwarded, 'x-request-id': givenId } = request.headers;
    if (typeof forwarded === 'string') request.headers['x-forwarded-for'] = withoutPorts(forwarded);
    const requestId = requestIdFrom(givenId, redact);
    setRequestContext(request, new HttpRequestContext(requestId, request, response));
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('Cache-Control', 'private, no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    next();
  };
}

/** The caller's own request id if it is safe and contains no secret; otherwise a new one. */
export function requestIdFrom(given: unknown, redact: Redactor = createRedactor()): string {
  const isSafe = typeof given === 'string' && SAFE_REQUEST_ID.test(given) && redact(given) === given;
  return isSafe ? given : randomUUID();
}

/** The value of Express's `trust proxy` setting for `TRUST_PROXY`. */
export function trustProxySetting(value: string): false | number | string {
  if (value === 'off') return false;
  return /^[0-9]+$/.test(value) ? Number(value) : value;
}

/** An address as Azure's gateways write it: `192.0.2.7:443`, `[2001:db8::1]:443` or `[2001:db8::1]`. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]*)?$/;

/** `X-Forwarded-For` without ports and brackets: with them Express would trust no proxy, and all callers would count as one. */
export function withoutPorts(forwarded: string): string {
  const addresses = forwarded.split(',').map((address) => address.trim().replace(WITH_PORT, '$1$2'));
  return addresses.join(', ');
}

/** The prefix that one household or one rented machine gets. */
const IPV6_PREFIX_BITS = 64;

/**
 * The network that an address belongs to, for counting by address: an IPv4 address by itself (also in its IPv6-mapped
 * form), an IPv6 address by its prefix, e.g. `2001:db8:1:2::/64`. `unknown` for anything else: behind a trusted proxy the
 * address can be any text.
 */
export function networkOf(address: string | undefined): string {
  // An IPv6 address may end with the zone of the interface, e.g. `fe80::1%eth0`.
  const [bare = ''] = (address ?? '').split('%', 1);
  if (isIP(bare) === 0) return 'unknown';
  const parsed = ipaddr.process(bare);
  if (parsed.kind() === 'ipv4' || parsed.range() === 'loopback') return parsed.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${bare}/${IPV6_PREFIX_BITS}`);
  return `${network.toString()}/${IPV6_PREFIX_BITS}`;
}
