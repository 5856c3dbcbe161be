import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, RequestHandler, Response } from 'express';
import { withPolicy } from '../../http/server/middleware.js';
import { AllowsHead, Audience, Public } from '../../http/routes/route.decorators.js';

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
  private readonly setPolicy = policyOf(this.page);

  @Get()
  getPage(@Req() request: Request, @Res() response: Response): void {
    this.setPolicy(request, response, () => response.type('html').send(this.page));
  }
}

/** Only the script and the styles of the page itself run, it calls this service alone, and no text becomes markup. */
function policyOf(page: string): RequestHandler {
  const hashesOf = (element: string): string[] =>
    Array.from(page.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, 'gs')), ([, text = '']) => {
      return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    });
  return withPolicy({
    scriptSrc: hashesOf('script'),
    styleSrc: hashesOf('style'),
    connectSrc: ["'self'"],
    imgSrc: ['data:'],
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["'none'"],
  });
}
