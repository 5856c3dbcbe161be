import { Body, Controller, Delete, Get, HttpStatus, Param, Post, Query, Req } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiErrors, BODY_ERRORS, unknownParameter } from '../../http/error-docs.js';
import { ApiResult } from '../../http/response-docs.js';
import { NoParameters } from '../../http/validation.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import {
  GRACE_HOURS_MAX,
  InactiveKeyError,
  InvalidLifetimeError,
  KEY_LIFETIME_DAYS_MAX,
  UnknownCursorError,
} from '../../organizations/organization-errors.js';
import { toIssuedKeyDto, toKeyDto, toRevokedKeyDto, toRotatedKeyDto } from '../to-dto.js';
import {
  adminActor,
  AdminRoutes,
  ApiKeyId,
  ApiOrganizationId,
  KEY_NOT_FOUND,
  ORGANIZATION_NOT_FOUND,
} from './admin-route.js';
import { IssueKeyDto, PageQueryDto, RotateKeyDto } from './dto/requests.dto.js';
import {
  ISSUED_KEY,
  IssuedKeyDto,
  KEY,
  KeysPageDto,
  REVOKED_KEY,
  RevokedKeyDto,
  ROTATED_KEY,
  RotatedKeyDto,
} from './dto/responses.dto.js';

/** Issues, lists, rotates and revokes API keys. */
@Controller('admin')
@AdminRoutes()
export class AdminKeysController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly keys: ApiKeysService,
  ) {}

  @Post('organizations/:id/keys')
  @ApiOrganizationId()
  @ApiOperation({
    operationId: 'issueKey',
    summary: 'Issue an API key',
    description: 'The response contains the key, which cannot be retrieved later.',
  })
  @ApiResult(HttpStatus.CREATED, IssuedKeyDto, 'The new key, including its plaintext.', ISSUED_KEY)
  @ApiErrors(new InvalidLifetimeError('expiresInDays', 1, KEY_LIFETIME_DAYS_MAX), ORGANIZATION_NOT_FOUND)
  @ApiErrors(...BODY_ERRORS)
  async issue(
    @Param('id') id: string,
    @Body() { name, expiresInDays }: IssueKeyDto,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<IssuedKeyDto> {
    const { id: organizationId } = await this.organizations.get(id);
    return toIssuedKeyDto(await this.keys.issue({ organizationId, name, expiresInDays }, adminActor(request)));
  }

  @Get('organizations/:id/keys')
  @ApiOrganizationId()
  @ApiOperation({ operationId: 'listKeys', summary: 'List the API keys of an organization' })
  @ApiResult(HttpStatus.OK, KeysPageDto, 'A page of keys, oldest first.', { keys: [KEY], next: null })
  @ApiErrors(new UnknownCursorError('key_x'), ORGANIZATION_NOT_FOUND)
  async list(@Param('id') id: string, @Query() { limit: count, after }: PageQueryDto): Promise<KeysPageDto> {
    const { id: organizationId } = await this.organizations.get(id);
    const { items, next } = await this.keys.list(organizationId, { count, after });
    return { keys: items.map(toKeyDto), next };
  }

  @Post('keys/:id/rotate')
  @ApiKeyId()
  @ApiOperation({
    operationId: 'rotateKey',
    summary: 'Rotate an API key',
    description:
      'Issues a key that replaces another, with the same name and lifetime. The old key stays valid for a grace period. The ' +
      'response contains the new key, which cannot be retrieved later.',
  })
  @ApiResult(HttpStatus.CREATED, RotatedKeyDto, 'The new key, including its plaintext, and the old key.', ROTATED_KEY)
  @ApiErrors(new InvalidLifetimeError('graceHours', 0, GRACE_HOURS_MAX), KEY_NOT_FOUND, {
    title: 'The key is revoked, expired or already replaced',
    error: new InactiveKeyError(KEY.id),
  })
  @ApiErrors(...BODY_ERRORS)
  async rotate(
    @Param('id') id: string,
    @Body() { graceHours }: RotateKeyDto,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<RotatedKeyDto> {
    return toRotatedKeyDto(await this.keys.rotate(id, graceHours, adminActor(request)));
  }

  @Delete('keys/:id')
  @ApiKeyId()
  @ApiOperation({
    operationId: 'revokeKey',
    summary: 'Revoke an API key',
    description:
      'The next call with the key is refused. Revoking a key again changes nothing. The keys that it replaced are not ' +
      'revoked: `stillValid` lists those whose grace period has not ended.',
  })
  @ApiResult(HttpStatus.OK, RevokedKeyDto, 'The revoked key.', REVOKED_KEY)
  @ApiErrors(unknownParameter('force'), KEY_NOT_FOUND)
  async revoke(
    @Param('id') id: string,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<RevokedKeyDto> {
    return toRevokedKeyDto(await this.keys.revoke(id, adminActor(request)));
  }
}
