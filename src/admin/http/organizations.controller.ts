import { Body, Controller, Delete, Get, HttpStatus, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiErrors } from '../../http/error-docs.js';
import { NoParameters } from '../../http/validation.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import {
  deletedOrganizationDocument,
  organizationDocument,
  type DeletedOrganizationDocument,
  type OrganizationDocument,
} from '../admin-views.js';
import {
  AdminRoutes,
  ApiBodyErrors,
  invalid,
  NO_SUCH_ORGANIZATION,
  NOT_THERE,
  NamesOrganization,
} from './admin-route.js';
import { DELETED_ORGANIZATION, ORGANIZATION } from './dto/responses.example.js';
import { DeletedOrganizationSchema, OrganizationSchema, OrganizationsPageSchema } from './dto/responses.dto.js';
import { ApiResult } from './api-response.decorator.js';
import { logChange } from './change-log.js';
import { NewOrganizationBody, OrganizationChangeBody, PageQuery } from './dto/requests.dto.js';

/** Organizations: make, list, look at, change, delete. */
@Controller('admin/organizations')
@AdminRoutes()
export class AdminOrganizationsController {
  constructor(private readonly organizations: OrganizationsService) {}

  @Post()
  @ApiOperation({ operationId: 'createOrganization', summary: 'Make an organization' })
  @ApiResult(HttpStatus.CREATED, OrganizationSchema, 'It was made.', ORGANIZATION)
  @ApiErrors(invalid('plan', 'plan must be free or pro.'), NOT_THERE)
  @ApiBodyErrors()
  async create(
    @Body() body: NewOrganizationBody,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<OrganizationDocument> {
    const document = organizationDocument(await this.organizations.create(body));
    const { id: organizationId, plan, monthlyLimit } = document;
    logChange(request, 'organization_created', { organizationId, plan, monthlyLimit });
    return document;
  }

  @Get()
  @ApiOperation({ operationId: 'listOrganizations', summary: 'List the organizations, the oldest first' })
  @ApiResult(HttpStatus.OK, OrganizationsPageSchema, 'One page of them.', { organizations: [ORGANIZATION], next: null })
  @ApiErrors(invalid('after', 'after must be the "next" of a page of this list, not "org_x".'), NOT_THERE)
  async list(@Query() { limit: count, after }: PageQuery): Promise<OrganizationsPageSchema> {
    const { organizations, next } = await this.organizations.list({ count, after });
    return { organizations: organizations.map(organizationDocument), next };
  }

  @Get(':id')
  @NamesOrganization()
  @ApiOperation({ operationId: 'getOrganization', summary: 'Look at an organization' })
  @ApiResult(HttpStatus.OK, OrganizationSchema, 'The organization.', ORGANIZATION)
  @ApiErrors(invalid('month', '"month" is not a parameter of this operation.'), NO_SUCH_ORGANIZATION)
  async get(@Param('id') id: string, @Query() _query: NoParameters): Promise<OrganizationDocument> {
    return organizationDocument(await this.organizations.get(id));
  }

  @Patch(':id')
  @NamesOrganization()
  @ApiOperation({
    operationId: 'changeOrganization',
    summary: 'Change the plan or the monthly limit of an organization',
    description: 'In force for the next call; calls that run are charged in full.',
  })
  @ApiResult(HttpStatus.OK, OrganizationSchema, 'The organization as it is now.', ORGANIZATION)
  @ApiErrors(
    invalid('monthlyLimit', 'monthlyLimit must be null or a whole number from 0 to 2147483647.'),
    NO_SUCH_ORGANIZATION,
  )
  @ApiBodyErrors()
  async change(
    @Param('id') id: string,
    @Body() body: OrganizationChangeBody,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<OrganizationDocument> {
    const { plan, monthlyLimit } = body;
    const document = organizationDocument(await this.organizations.change(id, { plan, monthlyLimit }));
    logChange(request, 'organization_changed', { organizationId: document.id, plan, monthlyLimit });
    return document;
  }

  @Delete(':id')
  @NamesOrganization()
  @ApiOperation({
    operationId: 'deleteOrganization',
    summary: 'Delete an organization',
    description: 'Its keys are refused from the next call on. Calls that run are settled; its settled calls are kept.',
  })
  @ApiResult(HttpStatus.OK, DeletedOrganizationSchema, 'The organization as it was.', DELETED_ORGANIZATION)
  @ApiErrors(invalid('force', '"force" is not a parameter of this operation.'), NO_SUCH_ORGANIZATION)
  async delete(
    @Param('id') id: string,
    @Query() _query: NoParameters,
    @Req() request: Request,
  ): Promise<DeletedOrganizationDocument> {
    const document = deletedOrganizationDocument(await this.organizations.delete(id));
    const { id: organizationId, revokedKeys } = document;
    logChange(request, 'organization_deleted', { organizationId, revokedKeys });
    return document;
  }
}
