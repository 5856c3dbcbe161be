import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestHandler } from 'express';
import { withPolicy } from './middleware.js';

const SCRIPT = 'page-script.html';

/**
 * Serves a page to everybody who may reach its address, because a browser sends no key when it opens a page: it has
 * neither data nor a secret, and asks for the key with which it calls the service. Only the script and the styles of the page itself
 * run, it calls this service alone, and no text becomes markup. The script that all pages share becomes a part of it.
 */
export function staticPage(file: string): RequestHandler {
  const script = readFileSync(join(import.meta.dirname, SCRIPT), 'utf8');
  const page = readFileSync(file, 'utf8').replace(`<!-- ${SCRIPT} -->`, () => script);
  const hashesOf = (element: string): string[] =>
    Array.from(page.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, 'gs')), ([, text = '']) => {
      return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    });
  const setPolicy = withPolicy({
    scriptSrc: hashesOf('script'),
    styleSrc: hashesOf('style'),
    connectSrc: ["'self'"],
    imgSrc: ['data:'],
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["'none'"],
  });
  return (request, response) => setPolicy(request, response, () => response.type('html').send(page));
}
