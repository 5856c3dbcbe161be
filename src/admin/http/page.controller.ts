import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { AllowsHead, Audience, Public } from '../../http/route.decorators.js';

/** Of a text such as `<script>…</script>`. */
const ELEMENTS = /<(script|style)>(.*?)<\/\1>/gs;

/**
 * The page for the operator. A browser sends no token when it opens a page, so the page is served to everybody who may reach
 * `/admin`: it has neither data nor a secret, and asks for the token that it reads `/admin` with.
 */
@ApiExcludeController()
@Controller('admin/ui')
@Public()
@AllowsHead()
@Audience('operators')
export class AdminPageController {
  private readonly page = readFileSync(join(import.meta.dirname, 'page.html'), 'utf8');
  private readonly policy = policyOf(this.page);

  @Get()
  getPage(@Res() response: Response): void {
    response.setHeader('Content-Security-Policy', this.policy);
    response.type('html').send(this.page);
  }
}

/** Only the script and the styles of the page itself run, it calls this service alone, and no text becomes markup. */
function policyOf(page: string): string {
  const hashes = { script: '', style: '' };
  for (const [, name, text = ''] of page.matchAll(ELEMENTS))
    hashes[name === 'script' ? 'script' : 'style'] += ` 'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const closed = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  const own = `script-src${hashes.script}; style-src${hashes.style}; connect-src 'self'; img-src data:`;
  return `${closed}; ${own}; require-trusted-types-for 'script'; trusted-types 'none'`;
}
