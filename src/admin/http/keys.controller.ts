import { Body, Controller, Delete, Get, HttpStatus, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Actor } from '../../domain/caller.js';
import { invalidField } from '../../domain/errors.js';
import { UnknownCursorError } from '../../domain/page.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { ApiResult } from '../../http/routes/response-docs.js';
import { ApiKey, IssuedKey, RevokedKey, RotatedKey } from '../../organizations/api-key.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { GRACE_HOURS_MAX, KEY_LIFETIME_DAYS_MAX } from '../../organizations/organization.entity.js';
import { InactiveKeyError, RevokedKeyError, TokenClientError } from '../../organizations/organization-errors.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { TokenClientsService } from '../../organizations/token-clients.service.js';
import { AdminRoutes, ApiKeyId, ApiOrganizationId, Operator } from './admin-route.js';
import { AdminClientDto, IssueKeyDto, PageQueryDto, RotateKeyDto } from './dto/requests.dto.js';
import { ISSUED_KEY, KEY, KeysPageDto, REVOKED_KEY, ROTATED_KEY, TOKEN_CLIENT } from './dto/responses.dto.js';

/** Issues, lists, rotates and revokes API keys, and blocks and unblocks clients of the identity provider. */
@Controller('admin')
@AdminRoutes()
export class AdminKeysController {
  constructor(
    private readonly organizations: OrganizationsService,
    private readonly keys: ApiKeysService,
    private readonly clients: TokenClientsService,
  ) {}

  @Post('organizations/:id/keys')
  @ApiOrganizationId()
  @ApiOperation({
    summary: 'Issue an API key',
    description: 'The response contains the key, which cannot be retrieved later.',
  })
  @ApiResult(HttpStatus.CREATED, IssuedKey, 'The new key, including its plaintext.', ISSUED_KEY)
  @ApiErrors(invalidField('expiresInDays', `expiresInDays must be an integer from 1 to ${KEY_LIFETIME_DAYS_MAX}.`))
  async issueKey(@Param('id') id: string, @Body() body: IssueKeyDto, @Operator() actor: Actor): Promise<IssuedKey> {
    const { id: organizationId } = await this.organizations.get(id);
    return this.keys.issue({ organizationId, ...body }, actor);
  }

  @Get('organizations/:id/keys')
  @ApiOrganizationId()
  @ApiOperation({
    summary: 'List the API keys of an organization',
    description: 'With the clients of the identity provider that have called (`kind: "oidc"`).',
  })
  @ApiResult(HttpStatus.OK, KeysPageDto, 'A page of keys, oldest first.', { keys: [KEY], next: null })
  @ApiErrors(new UnknownCursorError('key_x'))
  async listKeys(@Param('id') id: string, @Query() { limit, after }: PageQueryDto): Promise<KeysPageDto> {
    const { id: organizationId } = await this.organizations.get(id);
    const { items, next } = await this.keys.list(organizationId, { limit, after });
    return { keys: items, next };
  }

  @Post('keys/:id/rotate')
  @ApiKeyId()
  @ApiOperation({
    summary: 'Rotate an API key',
    description:
      'Issues a key that replaces another, with the same name, lifetime, scopes and monthly limit, against which both count. The old key stays valid for a grace period. The ' +
      'response contains the new key, which cannot be retrieved later.',
  })
  @ApiResult(HttpStatus.CREATED, RotatedKey, 'The new key, including its plaintext, and the old key.', ROTATED_KEY)
  @ApiErrors(
    invalidField('graceHours', `graceHours must be an integer from 0 to ${GRACE_HOURS_MAX}.`),
    { title: 'The key is revoked, expired or already replaced', error: new InactiveKeyError(KEY.id) },
    { title: 'The key is a client of the identity provider', error: new TokenClientError(KEY.id) },
  )
  async rotateKey(
    @Param('id') id: string,
    @Body() { graceHours }: RotateKeyDto,
    @Operator() actor: Actor,
  ): Promise<RotatedKey> {
    return this.keys.rotate(id, graceHours, actor);
  }

  @Delete('keys/:id')
  @ApiKeyId()
  @ApiOperation({
    summary: 'Revoke an API key',
    description:
      'The next call with the key is refused; of `kind: "oidc"`, every call of the client, also with new tokens. Revoking a key again changes nothing. The keys that it replaced are not ' +
      'revoked: `stillValid` lists those whose grace period has not ended.',
  })
  @ApiResult(HttpStatus.OK, RevokedKey, 'The revoked key.', REVOKED_KEY)
  async revokeKey(@Param('id') id: string, @Operator() actor: Actor): Promise<RevokedKey> {
    return this.keys.revoke(id, actor);
  }

  @Post('keys/:id/unblock')
  @ApiKeyId()
  @ApiOperation({
    summary: 'Unblock a client of the identity provider',
    description: 'Its next call is accepted again. A client that is not blocked does not change.',
  })
  @ApiResult(HttpStatus.OK, ApiKey, 'The client.', TOKEN_CLIENT)
  @ApiErrors({ title: 'The key is an API key, which stays revoked', error: new RevokedKeyError(KEY.id) })
  async unblockClient(@Param('id') id: string, @Operator() actor: Actor): Promise<ApiKey> {
    return this.keys.unblock(id, actor);
  }

  @Patch('clients')
  @ApiOperation({
    summary: 'Block a client of the identity provider under `/admin`',
    description:
      'Or let it in again. From its next call on, and also before its first one. What organizations accept from the client does not change.',
  })
  @ApiResult(HttpStatus.OK, AdminClientDto, 'The client.', { client: 'console', blocked: true })
  @ApiErrors(invalidField('client', 'client must have 1 to 255 characters and no control characters.'))
  async changeAdminClient(@Body() body: AdminClientDto, @Operator() actor: Actor): Promise<AdminClientDto> {
    return this.clients.setAdminAccess(body, actor);
  }
}
