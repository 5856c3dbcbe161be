import { Injectable } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Router } from 'express';

/** A route as the OpenAPI document names it. */
export interface Route {
  /** E.g. `/channels/{id}/transcripts`. */
  readonly path: string;
  /** In upper case, with HEAD where it is allowed. */
  readonly methods: readonly string[];
}

/** In the order in which `Allow` lists them. */
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'];

/** HEAD would fetch transcripts and charge quota, or read all results of a job, without returning them. */
const WITHOUT_HEAD = new Set([
  '/channels/{id}/transcripts',
  '/playlists/{id}/transcripts',
  '/videos/{id}/transcript',
  '/jobs/{id}/results',
]);

/** Swagger UI, its files and the OpenAPI document, which are not operations of the document. */
const DOCUMENT: Route = { path: '/docs', methods: ['GET', 'HEAD'] };
const DOCUMENT_PATH = /^\/docs(?:-json|\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/;

/** What `SwaggerModule` registers. */
const SWAGGER_PATH = /^\/docs(?:[-/]|$)/;

/** A `.` or `..` segment, also percent-encoded: proxies resolve them, this service does not. */
export const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

const SEGMENT = '[^/]+';

/**
 * The routes of the controllers, and `/docs`, in their exact spelling. Express also matches other cases and a trailing slash, which would
 * bypass a proxy's rules by path.
 */
@Injectable()
export class Routes {
  private readonly routes: (Route & { pattern: RegExp })[] = [];

  /**
   * Reads the routes that Nest has registered, after `app.init()`. The router of Express is read because Nest has no list of
   * its own that is complete and does not need the OpenAPI document.
   */
  read(app: NestExpressApplication): void {
    const { router } = app.getHttpAdapter().getInstance() as { router: Router };
    const registered = new Map<string, string[]>();
    for (const { route } of router.stack) {
      if (!route || SWAGGER_PATH.test(route.path)) continue;
      const path = route.path.replace(/:(\w+)/g, '{$1}');
      const methods = route.stack.map(({ method }) => method.toUpperCase());
      registered.set(path, [...(registered.get(path) ?? []), ...methods]);
    }
    if (registered.size === 0) throw new Error('No routes are registered with Express.');
    for (const [path, methods] of registered) this.add(path, methods);
  }

  add(path: string, registered: readonly string[]): void {
    const escaped = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^{}]+\}/g, SEGMENT);
    const methods = METHODS.filter((method) => registered.includes(method));
    if (methods.includes('GET') && !WITHOUT_HEAD.has(path)) methods.push('HEAD');
    this.routes.push({ path, methods, pattern: new RegExp(`^${escaped}$`) });
  }

  /** The routes of the controllers, in the order of their registration. */
  get all(): readonly Route[] {
    return this.routes;
  }

  /** The route whose path matches, for any method. */
  find(path: string): Route | undefined {
    if (DOT_SEGMENT.test(path)) return undefined;
    return this.routes.find(({ pattern }) => pattern.test(path)) ?? (DOCUMENT_PATH.test(path) ? DOCUMENT : undefined);
  }
}
