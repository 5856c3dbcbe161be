import { Reflector } from '@nestjs/core';

// What a route declares about itself, on its handler or on the controller. Without a declaration it has the strictest rules:
// it needs a guard, and the scope `write` unless it is a GET, and refuses HEAD and everything that its handler does not name as a
// parameter.

const flagDecorator = () => Reflector.createDecorator<void, true>({ transform: () => true });

/** Serves callers without any credential. The start fails on a route that has neither this nor a guard. */
export const Public = flagDecorator();

/** Responds to HEAD as to GET, which must cost no quota: the route is called and its body is not sent. */
export const AllowsHead = flagDecorator();

/** Accepts query parameters that no DTO declares, and ignores them. */
export const AnyQuery = flagDecorator();

/** Changes nothing although it is no GET: a key or a token without the scope `write` may call it. */
export const Reads = flagDecorator();

/** Requested every few seconds: served until a shutdown ends, logged at the level debug, and not traced. */
export const Probe = flagDecorator();

/**
 * Who may reach the route from outside. `operators`: the networks that the proxy names. `internal`: nobody, the proxy has no
 * line for it. Neither is available to pages of other origins. Without it: everybody.
 */
export const Audience = Reflector.createDecorator<'operators' | 'internal'>();

/** Reads a JSON object of another maximum size than all routes. Without a parameter for it the handler validates it itself. */
export const BodyBytesMax = Reflector.createDecorator<number>();

/**
 * The `:id` within the path may be a URL whose slashes are not encoded, as by gateways that decode `%2F`. `page`: also the URL
 * of a page of the platform with its own query.
 */
export const RawUrlId = Reflector.createDecorator<'channel' | 'page'>();
