import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { ADMIN_TOKEN_SCHEME } from './admin/http/admin-route.js';
import { API_KEY_SCHEME } from './auth/guarded.decorator.js';
import { METRICS_TOKEN_SCHEME } from './observability/metrics/metrics.controller.js';

/** The version of the interface; additions raise the second number. */
const API_VERSION = '1.1.0';

/** The OpenAPI document of all routes. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setTitle('Channel Transcripts')
    .setDescription(
      "Returns the transcripts of a YouTube channel's newest uploads in one call. Press Authorize, paste an API key and execute. " +
        'Every error has the same envelope, `{ "error": { code, message, retryable, requestId } }`, and every response an ' +
        "`X-Request-Id`, which echoes the caller's own if that has at most 128 letters, digits and `._:/+=@-`. Paths must be " +
        'spelled as in this document: another case, a trailing slash or unnecessary percent-encoding is 404. A request with more ' +
        'than one `Authorization` header, or with a path that cannot be decoded, is 400 before authentication.',
    )
    .setVersion(API_VERSION)
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('/', 'The service that serves this document')
    .addTag('channels', 'Transcripts by channel')
    .addTag('usage', 'Quota usage of an organization')
    .addTag('health', 'Health checks')
    .addTag('metrics', 'Prometheus metrics')
    .addTag(
      'admin',
      'Organizations, API keys and usage, for the operator of the service; available when `ADMIN_TOKEN` is set',
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

/** Serves the document at /docs-json and Swagger UI at /docs. */
export function serveDocument(app: INestApplication, document: OpenAPIObject): void {
  SwaggerModule.setup('docs', app, document, {
    jsonDocumentUrl: 'docs-json',
    ui: true,
    raw: ['json'],
    customSiteTitle: 'Channel Transcripts',
    // The pasted key is not stored in the browser, where any script of this origin could read it.
    swaggerOptions: { persistAuthorization: false, tryItOutEnabled: true, displayRequestDuration: true },
  });
}
