import { Module } from '@nestjs/common';
import { ApiKeysService } from './api-keys.service.js';
import { FeedLinksService } from './feed-links.service.js';
import { TokenClientsService } from './token-clients.service.js';
import { OrganizationsService } from './organizations.service.js';

@Module({
  providers: [OrganizationsService, ApiKeysService, FeedLinksService, TokenClientsService],
  exports: [OrganizationsService, ApiKeysService, FeedLinksService, TokenClientsService],
})
export class OrganizationsModule {}
