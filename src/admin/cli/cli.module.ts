import { Module, type DynamicModule } from '@nestjs/common';
import { ConfigModule } from '../../config/config.module.js';
import type { Environment } from '../../config/environment.js';
import { DatabaseModule } from '../../database/database.module.js';
import { MIGRATIONS } from '../../database/migrations/all-migrations.js';
import { ApiKey } from '../../organizations/api-key.entity.js';
import { Organization } from '../../organizations/organization.entity.js';
import { OrganizationsModule } from '../../organizations/organizations.module.js';
import { QuotaModule } from '../../quota/quota.module.js';

/** What the admin commands need of the application: the database, organizations and quota; nothing that listens. */
@Module({})
export class CliModule {
  static forRoot(environment: Environment): DynamicModule {
    return {
      module: CliModule,
      imports: [
        ConfigModule.forRoot(environment),
        DatabaseModule.forRoot({ as: 'command', entities: [Organization, ApiKey], migrations: MIGRATIONS }),
        OrganizationsModule,
        QuotaModule,
      ],
    };
  }
}
