import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestHandler } from 'express';
import { PACKAGE_FOLDER } from './config/package.js';
import { withPolicy } from './http/server/middleware.js';

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
export function errorsPage(): RequestHandler {
  let page: Page | undefined;
  return (request, response) => {
    const { html, setPolicy } = (page ??= readPage());
    setPolicy(request, response, () => response.type('html').send(html));
  };
}
