import { join } from 'node:path';
import { Controller, Get, Next, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { NextFunction, Request, Response } from 'express';
import { AllowsHead, Public } from '../http/routes/route.decorators.js';
import { staticPage } from '../http/server/static-page.js';

/** The page of the library for people. */
@ApiExcludeController()
@Controller('library/ui')
@Public()
@AllowsHead()
export class LibraryPageController {
  private readonly sendPage = staticPage(join(import.meta.dirname, 'library-page.html'));

  @Get()
  getPage(@Req() request: Request, @Res() response: Response, @Next() next: NextFunction): void {
    void this.sendPage(request, response, next);
  }
}
