import { Body, Controller, Delete, Get, HttpStatus, Param, Post, Query, Req } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiErrors } from '../../http/error-docs.js';
import { NoParameters } from '../../http/validation.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import {
  issuedKeyDocument,
  keyDocument,
  revokedKeyDocument,
  rotatedKeyDocument,
  type IssuedKeyDocument,
  type RevokedKeyDocument,
  type RotatedKeyDocument,
} from '../admin-views.js';
import {
  AdminRoutes,
  ApiBodyErrors,
  invalid,
  NO_SUCH_KEY,
  NO_SUCH_ORGANIZATION,
  NamesKey,
  NamesOrganization,
} from './admin-route.js';
import { ISSUED_KEY, KEY, REVOKED_KEY, ROTATED_KEY } from './dto/responses.example.js';
import { IssuedKeySchema, KeysPageSchema, RevokedKeySchema, RotatedKeySchema } from './dto/responses.dto.js';
import { ApiResult } from './api-response.decorator.js';
import { logChange } from './change-log.js';
import { NewKeyBody, PageQuery, RotationBody } from './dto/requests.dto.js';

/** Keys: issue, list, rotate, revoke. */
@Controller('admin')
@AdminRoutes()
export class AdminKeysController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly keys: ApiKeysService,
  ) {}

  @Post('organizations/:id/keys')
  @NamesOrganization()
  @ApiOperation({ operationId: 'issueKey', summary: 'Issue a key; it is shown this once' })
  @ApiResult(HttpStatus.CREATED, IssuedKeySchema, 'The key, with its plaintext.', ISSUED_KEY)
  @ApiErrors(invalid('expiresInDays', 'expiresInDays must be a whole number from 1 to 36500.'), NO_SUCH_ORGANIZATION)
  @ApiBodyErrors()
  async issue(
    @Param('id') id: string,
    @Body() { name, expiresInDays }: NewKeyBody,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<IssuedKeyDocument> {
    const { id: organizationId } = await this.organizations.get(id);
    const document = issuedKeyDocument(await this.keys.issue({ organizationId, name, expiresInDays }));
    logChange(request, 'key_issued', { organizationId, keyId: document.id, expiresAt: document.expiresAt });
    return document;
  }

  @Get('organizations/:id/keys')
  @NamesOrganization()
  @ApiOperation({ operationId: 'listKeys', summary: 'List the keys of an organization, the oldest first' })
  @ApiResult(HttpStatus.OK, KeysPageSchema, 'One page of them.', { keys: [KEY], next: null })
  @ApiErrors(invalid('after', 'after must be the "next" of a page of this list, not "key_x".'), NO_SUCH_ORGANIZATION)
  async list(@Param('id') id: string, @Query() { limit: count, after }: PageQuery): Promise<KeysPageSchema> {
    const { id: organizationId } = await this.organizations.get(id);
    const { keys, next } = await this.keys.list(organizationId, { count, after });
    return { keys: keys.map(keyDocument), next };
  }

  @Post('keys/:id/rotate')
  @NamesKey()
  @ApiOperation({
    operationId: 'rotateKey',
    summary: 'Issue a key in place of another, which lives on for a grace period',
  })
  @ApiResult(HttpStatus.CREATED, RotatedKeySchema, 'The new key, with its plaintext, and the old one.', ROTATED_KEY)
  @ApiErrors(invalid('graceHours', 'graceHours must be a whole number from 0 to 8760.'), NO_SUCH_KEY, 'conflict')
  @ApiBodyErrors()
  async rotate(
    @Param('id') id: string,
    @Body() { graceHours }: RotationBody,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<RotatedKeyDocument> {
    const document = rotatedKeyDocument(await this.keys.rotate(id, graceHours));
    const { id: keyId, organizationId, replaced } = document;
    logChange(request, 'key_rotated', { organizationId, keyId, replacedKeyId: replaced.id, graceHours });
    return document;
  }

  @Delete('keys/:id')
  @NamesKey()
  @ApiOperation({
    operationId: 'revokeKey',
    summary: 'Revoke a key',
    description:
      'It is refused from the next call on. Revoking it again changes nothing. A key in whose place it was issued is not ' +
      'revoked with it: `stillValid` names those whose grace period has not ended.',
  })
  @ApiResult(HttpStatus.OK, RevokedKeySchema, 'The key as it is now.', REVOKED_KEY)
  @ApiErrors(invalid('force', '"force" is not a parameter of this operation.'), NO_SUCH_KEY)
  async revoke(
    @Param('id') id: string,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<RevokedKeyDocument> {
    const document = revokedKeyDocument(await this.keys.revoke(id));
    const { id: keyId, organizationId } = document;
    const stillValid = document.stillValid.map((key) => key.id);
    logChange(request, 'key_revoked', { organizationId, keyId, ...(stillValid.length > 0 && { stillValid }) });
    return document;
  }
}
