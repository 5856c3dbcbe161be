import { Controller, Get, HttpStatus, Req } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { z } from 'zod';
import { Environment } from '../../config/environment.js';
import { SCOPES, tokenScope } from '../../domain/caller.js';
import { addressOf, audienceUrl, MCP_PATH, METADATA_PATH } from '../../http/errors/challenge.js';
import { ApiErrors } from '../../http/errors/error-docs.js';
import { ApiResult } from '../../http/routes/response-docs.js';
import { AllowsHead, AnyQuery, Public } from '../../http/routes/route.decorators.js';

/** The one that every OpenID provider has: some refuse clients that ask for others, which they have only for OIDC_SCOPES. */
const SCOPE = 'openid';

const ResourceMetadataDto = z
  .object({
    resource: z
      .string()
      .exactOptional()
      .describe(
        'What a client asks a token for: `OIDC_AUDIENCE` if it is a URL, or else this service. Absent if the request has no valid `Host`.',
      ),
    authorization_servers: z.array(z.string()).describe('The issuer of the access tokens (`OIDC_ISSUER`).'),
    scopes_supported: z.array(z.string()).describe('The scopes that a client asks for.'),
    bearer_methods_supported: z.array(z.string()).describe('How a token is sent: in the header `Authorization`.'),
  })
  .meta({ id: 'ResourceMetadata' });
type ResourceMetadataDto = z.infer<typeof ResourceMetadataDto>;

const EXAMPLE: ResourceMetadataDto = {
  resource: 'https://transcripts.example.com/mcp',
  authorization_servers: ['https://id.example.com/realms/acme'],
  scopes_supported: [SCOPE],
  bearer_methods_supported: ['header'],
};

/** Tells clients that sign in by OAuth, such as assistants, where to (RFC 9728). Only with `OIDC_ISSUER`. */
@Controller(METADATA_PATH)
@ApiTags('sign-in')
@Public()
@AllowsHead()
@AnyQuery()
@ApiErrors('internal_error')
export class ResourceMetadataController {
  constructor(private readonly environment: Environment) {}

  @Get()
  @ApiOperation({ security: [], summary: 'Retrieve where access tokens for this service are issued (RFC 9728)' })
  @ApiResult(HttpStatus.OK, ResourceMetadataDto, 'The metadata of the service as an OAuth resource.', EXAMPLE)
  getResourceMetadata(@Req() request: Request): ResourceMetadataDto {
    return this.metadataOf(request, '');
  }

  @Get('mcp')
  @ApiOperation({ security: [], summary: 'Retrieve where access tokens for `/mcp` are issued (RFC 9728)' })
  @ApiResult(HttpStatus.OK, ResourceMetadataDto, 'The metadata of `/mcp` as an OAuth resource.', EXAMPLE)
  getMcpResourceMetadata(@Req() request: Request): ResourceMetadataDto {
    return this.metadataOf(request, MCP_PATH);
  }

  private metadataOf(request: Request, path: string): ResourceMetadataDto {
    const { OIDC_ISSUER = '', OIDC_AUDIENCE = '', OIDC_SCOPES } = this.environment;
    const address = addressOf(request);
    const own = address === undefined ? {} : { resource: `${address}${path}` };
    return {
      ...(audienceUrl(this.environment) ? { resource: OIDC_AUDIENCE } : own),
      authorization_servers: [OIDC_ISSUER],
      scopes_supported: [SCOPE, ...(OIDC_SCOPES ? SCOPES.map(tokenScope) : [])],
      bearer_methods_supported: EXAMPLE.bearer_methods_supported,
    };
  }
}
