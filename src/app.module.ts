import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { AdminModule } from './admin/admin.module.js';
import { CacheModule } from './cache/cache.module.js';
import { AuditModule } from './audit/audit-trail.js';
import { AuthModule } from './auth/auth.module.js';
import { ResourceMetadataController } from './auth/oidc/resource-metadata.controller.js';
import { ChannelsController } from './channels/channels.controller.js';
import { ConfigModule } from './config/config.module.js';
import type { Environment } from './config/environment.js';
import type { DatabaseOptions } from './database/data-source.js';
import { DatabaseModule } from './database/database.module.js';
import { HealthModule } from './health/health.module.js';
import { HttpModule } from './http/http.module.js';
import { JobsModule } from './jobs/jobs.module.js';
import { LibraryModule, LibraryUpkeepModule } from './library/library.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { ApiKey } from './organizations/api-key.js';
import { Organization } from './organizations/organization.entity.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';
import { PlaylistsController } from './playlists/playlists.controller.js';
import { QuotaModule } from './quota/quota.module.js';
import { TranscriptsModule } from './transcripts/transcripts.module.js';
import { AuditController, UsageController } from './usage/usage.controller.js';
import { VideosController } from './videos/videos.controller.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

/** Wiring only, and the only module that names the platform. */
@Module({})
export class AppModule {
  /**
   * @param others the modules that accept calls by other transports than HTTP
   * @param as the role on an embedded database; only a service does the housekeeping of all organizations
   */
  static with(
    environment: Environment,
    others: readonly Type<unknown>[] = [],
    as: DatabaseOptions['as'] = 'service',
  ): DynamicModule {
    return {
      module: AppModule,
      controllers: [
        ...[ChannelsController, PlaylistsController, VideosController, UsageController, AuditController],
        ...(environment.OIDC_ISSUER === undefined ? [] : [ResourceMetadataController]),
      ],
      imports: [
        ConfigModule.forRoot(environment),
        DatabaseModule.forRoot({ as, entities: [Organization, ApiKey] }),
        CacheModule.forRoot(environment),
        HttpModule,
        { module: YoutubeModule, global: true },
        AuditModule,
        AuthModule,
        QuotaModule,
        TranscriptsModule,
        JobsModule,
        LibraryModule,
        ...(as === 'service' ? [LibraryUpkeepModule] : []),
        WebhooksModule.with(as),
        McpModule,
        ...((environment.ADMIN_TOKEN ?? environment.OIDC_ADMIN_CLAIM) ? [AdminModule] : []),
        HealthModule,
        ...others,
      ],
    };
  }
}
