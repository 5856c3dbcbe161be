import type { NextFunction, Request, Response } from 'express';
import helmet, { type HelmetOptions } from 'helmet';

const DOCS = /^\/docs(?:\/|$)/;

/**
 * The hashes of the styles that stand in the page of Swagger UI itself, as elements and as the attribute of a picture.
 * They come from @nestjs/swagger 12.0.2; the test of the page in a browser fails, and names it, when there is another.
 */
const PAGE_STYLES = [
  "'sha256-/jDKvbQ8cdux+c5epDIqkjHbXDaIY8RucT1PmAe8FG4='",
  "'sha256-ezdv1bOGcoOD7FKudKN0Y2Mb763O6qVtM8LT2mtanIU='",
  "'sha256-eaPyLWVdqMc60xuz5bTp2yBRgVpQSoUggte1+40ONPU='",
  "'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='",
];

const shared: HelmetOptions = {
  // TLS is the proxy's, and so is the promise to keep it: this service cannot know for which names and how long.
  strictTransportSecurity: false,
  xFrameOptions: { action: 'deny' },
};

/** What the service answers is data: nothing of it is to be run, framed or followed. */
const forData = helmet({
  ...shared,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] },
  },
});

/** The page runs the scripts that are served beside it, and asks this service only. */
const forDocs = helmet({
  ...shared,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'", "'unsafe-hashes'", ...PAGE_STYLES],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
});

/** Middleware: the headers that tell a browser how little it may do with an answer. */
export function setSecurityHeaders(request: Request, response: Response, next: NextFunction): void {
  (DOCS.test(request.path) ? forDocs : forData)(request, response, next);
}
