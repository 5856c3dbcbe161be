import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { ADMIN_TOKEN_SCHEME } from './admin/http/admin-route.js';
import { API_KEY_SCHEME } from './auth/guarded.decorator.js';
import { METRICS_TOKEN_SCHEME } from './observability/metrics/metrics.controller.js';

/** The version of the interface; additions raise the second number. */
const API_VERSION = '1.1.0';

/** The OpenAPI document of every route there is. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setTitle('Channel Transcripts')
    .setDescription(
      "The transcripts of a YouTube channel's newest uploads in one call. Press Authorize, paste an API key and execute. " +
        'Every error has one envelope, `{ "error": { code, message, retryable, requestId } }`, and every response an `X-Request-Id`, ' +
        "which echoes the caller's own when that is at most 128 plain characters. Paths are taken as they are written here: in " +
        'another case, with a slash at the end or with other characters percent-encoded they are 404. A request with more ' +
        'than one `Authorization` header, or with a path that cannot be decoded, is 400 before its key is looked at.',
    )
    .setVersion(API_VERSION)
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('/', 'The service that serves this document')
    .addTag('channels', 'Transcripts by channel')
    .addTag('usage', 'What an organization has used of its quota')
    .addTag('health', 'Probes')
    .addTag('metrics', 'Figures for Prometheus')
    .addTag(
      'admin',
      'Organizations, keys and usage, for whoever runs the service; there only when `ADMIN_TOKEN` is set',
    )
    .addBearerAuth(
      {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'API key',
        description: 'An API key of an organization: `ctk_…`.',
      },
      API_KEY_SCHEME,
    )
    .addBearerAuth(
      { type: 'http', scheme: 'bearer', description: 'The `ADMIN_TOKEN` of the service.' },
      ADMIN_TOKEN_SCHEME,
    )
    .addBearerAuth(
      { type: 'http', scheme: 'bearer', description: 'The `METRICS_TOKEN` of the service, when it is set.' },
      METRICS_TOKEN_SCHEME,
    );
  return SwaggerModule.createDocument(app, builder.build());
}

/** Serves the document at /docs-json and a page to try it on at /docs. */
export function serveDocument(app: INestApplication, document: OpenAPIObject): void {
  SwaggerModule.setup('docs', app, document, {
    jsonDocumentUrl: 'docs-json',
    ui: true,
    raw: ['json'],
    customSiteTitle: 'Channel Transcripts',
    // A key that is pasted here is forgotten with the page: what the browser stores, any script of this origin can read.
    swaggerOptions: { persistAuthorization: false, tryItOutEnabled: true, displayRequestDuration: true },
  });
}
