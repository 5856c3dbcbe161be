import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';

/**
 * Hashes of the inline styles of the Swagger UI page of @nestjs/swagger 12.0.2, and of those that its scripts set.
 * `test/http/security.e2e-spec.ts` fails when the page of another version has others; what the scripts set, a browser shows.
 */
const PAGE_STYLES = [
  "'sha256-/jDKvbQ8cdux+c5epDIqkjHbXDaIY8RucT1PmAe8FG4='",
  "'sha256-ezdv1bOGcoOD7FKudKN0Y2Mb763O6qVtM8LT2mtanIU='",
  "'sha256-eaPyLWVdqMc60xuz5bTp2yBRgVpQSoUggte1+40ONPU='",
  "'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='",
];

const NONE = ["'none'"];

/** Responses are data: browsers must not execute, frame or navigate them. @param directives what a page needs besides */
export function withPolicy(directives: Record<string, string[]> = {}) {
  const strict = { defaultSrc: NONE, baseUri: NONE, formAction: NONE, frameAncestors: NONE };
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { ...strict, ...directives } },
    // The proxy terminates TLS and sets this header: the service does not know the host names it applies to.
    strictTransportSecurity: false,
    xFrameOptions: { action: 'deny' },
  });
}

const forData = withPolicy();

/** Swagger UI runs the scripts served with it and calls this service only. */
const forDocs = withPolicy({
  scriptSrc: ["'self'"],
  styleSrc: ["'self'", "'unsafe-hashes'", ...PAGE_STYLES],
  imgSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
});

/**
 * Middleware: the headers that restrict what browsers do with a response.
 *
 * @param isDocs whether a path is a page or file of Swagger UI
 */
export function securityHeaders(isDocs: (path: string) => boolean) {
  return (request: Request, response: Response, next: NextFunction): void =>
    (isDocs(request.path) ? forDocs : forData)(request, response, next);
}
