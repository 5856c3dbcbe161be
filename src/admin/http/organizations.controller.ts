import { Body, Controller, Delete, Get, HttpStatus, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Actor } from '../../domain/caller.js';
import { invalidField } from '../../domain/errors.js';
import { UnknownCursorError } from '../../domain/page.js';
import { ApiErrors, type ErrorExample } from '../../http/errors/error-docs.js';
import { ApiResult } from '../../http/routes/response-docs.js';
import { CreatedOrganization, DeletedOrganization, Organization } from '../../organizations/organization.entity.js';
import { ExternalIdTakenError } from '../../organizations/organization-errors.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { AdminRoutes, ApiOrganizationId, Operator } from './admin-route.js';
import { CreateOrganizationDto, OrganizationsQueryDto, UpdateOrganizationDto } from './dto/requests.dto.js';
import { DELETED_ORGANIZATION, ORGANIZATION, OrganizationsPageDto } from './dto/responses.dto.js';

const EXTERNAL_ID_TAKEN: ErrorExample = {
  title: 'Another organization has the external ID',
  error: new ExternalIdTakenError('acme'),
};

/** Creates, lists, retrieves, updates and deletes organizations. */
@Controller('admin/organizations')
@AdminRoutes()
export class AdminOrganizationsController {
  constructor(private readonly organizations: OrganizationsService) {}

  @Post()
  @ApiOperation({ summary: 'Create an organization' })
  @ApiResult(HttpStatus.CREATED, CreatedOrganization, 'The new organization.', ORGANIZATION)
  @ApiErrors(invalidField('plan', 'plan must be free or pro.'), EXTERNAL_ID_TAKEN)
  async createOrganization(
    @Body() body: CreateOrganizationDto,
    @Operator() actor: Actor,
  ): Promise<CreatedOrganization> {
    return this.organizations.create(body, actor);
  }

  @Get()
  @ApiOperation({ summary: 'List organizations' })
  @ApiResult(HttpStatus.OK, OrganizationsPageDto, 'A page of organizations, oldest first.', {
    organizations: [ORGANIZATION],
    next: null,
  })
  @ApiErrors(new UnknownCursorError('org_x'))
  async listOrganizations(@Query() { name, ...page }: OrganizationsQueryDto): Promise<OrganizationsPageDto> {
    const { items, next } = await this.organizations.list(page, name);
    return { organizations: items, next };
  }

  @Get(':id')
  @ApiOrganizationId()
  @ApiOperation({ summary: 'Retrieve an organization' })
  @ApiResult(HttpStatus.OK, Organization, 'The organization.', ORGANIZATION)
  async getOrganization(@Param('id') id: string): Promise<Organization> {
    return this.organizations.get(id);
  }

  @Patch(':id')
  @ApiOrganizationId()
  @ApiOperation({
    summary: 'Update the plan, the monthly limit or the external ID of an organization',
    description: 'Takes effect with the next call. Running calls are charged in full.',
  })
  @ApiResult(HttpStatus.OK, Organization, 'The updated organization.', ORGANIZATION)
  @ApiErrors(
    invalidField('monthlyLimit', 'monthlyLimit must be null or an integer from 0 to 2147483647.'),
    EXTERNAL_ID_TAKEN,
  )
  async changeOrganization(
    @Param('id') id: string,
    @Body() body: UpdateOrganizationDto,
    @Operator() actor: Actor,
  ): Promise<Organization> {
    const { plan, monthlyLimit, externalId } = body;
    if (plan === undefined && monthlyLimit === undefined && externalId === undefined) {
      throw invalidField('body', 'The body must contain plan, monthlyLimit or externalId.');
    }
    return this.organizations.change(id, body, actor);
  }

  @Delete(':id')
  @ApiOrganizationId()
  @ApiOperation({
    summary: 'Delete an organization',
    description:
      'Revokes every key of the organization; the next call with one of them is refused. Running calls are settled, and the ' +
      'usage of the organization remains available by its ID.',
  })
  @ApiResult(HttpStatus.OK, DeletedOrganization, 'The deleted organization.', DELETED_ORGANIZATION)
  async deleteOrganization(@Param('id') id: string, @Operator() actor: Actor): Promise<DeletedOrganization> {
    return this.organizations.delete(id, actor);
  }
}
