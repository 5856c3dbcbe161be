import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { NextFunction, Request, Response, RequestHandler } from 'express';
import { ADMIN_TOKEN_SCHEME } from './admin/http/admin-route.js';
import { API_KEY_SCHEME, TOKEN_SCHEME } from './auth/auth.decorators.js';
import { VERSION, PACKAGE_FOLDER } from './config/package.js';
import { MethodNotAllowedError, RouteNotFoundError } from './http/errors/http-errors.js';
import { DOCS_PAGE, ERRORS_PAGE } from './http/errors/error-body.js';
import { describeRoutes } from './http/errors/error-docs.js';
import { withPolicy } from './http/server/middleware.js';
import { addSchemas, forSwaggerUi } from './http/routes/response-docs.js';
import { Routes } from './http/routes/routes.js';
import { METRICS_TOKEN_SCHEME } from './health/health.controller.js';

export function createDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setTitle('Channel Transcripts')
    .setDescription(
      "Returns the transcripts of a YouTube channel's newest uploads in one call, or those of a playlist, a list of videos or one " +
        'video; jobs fetch a whole channel, and subscriptions follow one.\n\n' +
        'The first call: select **Authorize**, enter your API key, then open `GET /channels/{id}/transcripts` below and select ' +
        '**Execute**. Or in a terminal:\n\n' +
        '    curl -H "Authorization: Bearer <API_KEY>" "<this address>/channels/@harbourlight/transcripts?limit=1"\n\n' +
        `Every error has a stable code and a link to [what it means](${ERRORS_PAGE}), where also the ` +
        `[rules of requests](${ERRORS_PAGE}#rules-of-requests) are.`,
    )
    .setVersion(VERSION)
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('/', 'The service that serves this document')
    .addTag('channels', 'Uploads of channels and their transcripts')
    .addTag('videos', 'Transcripts of single videos and lists of videos')
    .addTag('playlists', 'Transcripts of playlists')
    .addTag('jobs', 'Archive jobs of whole channels, playlists and lists of videos')
    .addTag('subscriptions', 'Channels that are followed')
    .addTag('mcp', 'Tools for AI assistants')
    .addTag('webhooks', 'Events sent to URLs of the organization')
    .addTag('sign-in', 'Where access tokens are issued. Available only when `OIDC_ISSUER` is set.')
    .addTag('usage', 'Quota usage of the organization')
    .addTag('health', 'Liveness and readiness probes')
    .addTag('metrics', 'Prometheus metrics')
    .addTag(
      'admin',
      'Management of organizations, API keys, usage and archive jobs by the operator. Available only when `ADMIN_TOKEN` or `OIDC_ADMIN_CLAIM` is set.',
    )
    // Not addBearerAuth, which states that a token without a format is a JWT. Swagger UI shows them in this order.
    .addSecurity(API_KEY_SCHEME, {
      ...bearer('An API key of an organization (`ctk_…`), without the word `Bearer`.'),
      bearerFormat: 'API key',
    })
    .addSecurity(TOKEN_SCHEME, {
      ...bearer(
        'With `OIDC_ISSUER`: an access token of the identity provider, in place of an API key or the admin token.',
      ),
      bearerFormat: 'JWT',
    })
    .addSecurity(ADMIN_TOKEN_SCHEME, bearer('The `ADMIN_TOKEN` of the service.'))
    .addSecurity(METRICS_TOKEN_SCHEME, bearer('The `METRICS_TOKEN` of the service, when it is set.'));
  const described = SwaggerModule.createDocument(app, builder.build(), {
    operationIdFactory: (_controller, handler) => handler,
  });
  describeRoutes(described, Routes.preview(app).all);
  addSchemas(described);
  return described;
}

const DOCUMENT = '/docs-json';
const FILE = /^\/docs\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

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

/** Middleware: Swagger UI runs the scripts served with it and calls this service only. */
export const docsHeaders = withPolicy({
  scriptSrc: ["'self'"],
  styleSrc: ["'self'", "'unsafe-hashes'", ...PAGE_STYLES],
  imgSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
});

/**
 * Middleware: of the documentation, refuses what is neither the document nor a page. Express would resolve and decode the path of a
 * file, and redirect. Test: `test/http/paths.e2e-spec.ts`.
 */
function refuseOtherDocs({ method, originalUrl }: Request, _response: Response, next: NextFunction): void {
  const [path = ''] = originalUrl.split('?', 1);
  if (path !== DOCS_PAGE && path !== DOCUMENT && !FILE.test(path)) next(new RouteNotFoundError(DOCS_PAGE));
  else next(method === 'GET' || method === 'HEAD' ? undefined : new MethodNotAllowedError('GET, HEAD'));
}

const bearer = (description: string) => ({ type: 'http' as const, scheme: 'bearer', description });

/** Of the browser, where Swagger UI runs `focusFirstKey`. */
declare const document: { querySelector(selector: string): { focus(): void } | null };

/** A plugin of Swagger UI: every field of the dialog takes the focus, and the last one, of the metrics token, would keep it. */
const focusFirstKey = {
  statePlugins: {
    auth: {
      wrapActions: {
        showDefinitions: (show: (schemes: unknown) => void) => (schemes: unknown) => {
          show(schemes);
          // An action without schemes closes the dialog.
          setTimeout(() => document.querySelector('.auth-container input')?.focus());
        },
      },
    },
  },
};

/** Serves the document at /docs-json, and Swagger UI and the page about errors at /docs. Each is created for the first request. */
export function serveDocument(app: INestApplication): void {
  app.use([DOCS_PAGE, DOCUMENT], refuseOtherDocs);
  app.use(ERRORS_PAGE, errorsPage());
  SwaggerModule.setup('docs', app, () => createDocument(app), { ui: false, raw: ['json'] });
  SwaggerModule.setup('docs', app, () => forSwaggerUi(createDocument(app)), {
    raw: false,
    customSiteTitle: 'Channel Transcripts',
    // The key is not stored in the browser, where any script of this origin could read it.
    swaggerOptions: {
      persistAuthorization: false,
      tryItOutEnabled: true,
      displayRequestDuration: true,
      plugins: [focusFirstKey],
    },
  });
}

interface Page {
  html: string;
  setPolicy: RequestHandler;
}

/** Reads the page that the build makes of docs/errors.md. It runs and loads nothing, and has one style of its own. */
function readPage(): Page {
  const html = readFileSync(join(PACKAGE_FOLDER, 'dist/errors.html'), 'utf8');
  const [, style = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  return { html, setPolicy: withPolicy({ styleSrc: [`'sha256-${hash}'`] }) };
}

/** Serves the page to which the field `docs` of an error leads. It is read for the first request, not at each start. */
function errorsPage(): RequestHandler {
  let page: Page | undefined;
  return (request, response) => {
    const { html, setPolicy } = (page ??= readPage());
    setPolicy(request, response, () => response.type('html').send(html));
  };
}
