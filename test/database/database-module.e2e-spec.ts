import { describe, expect, it } from '@jest/globals';
import { Global, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { Environment } from '../../src/config/environment.js';
import { DatabaseModule } from '../../src/database/database.module.js';
import { copyTestCluster, postmasterPid } from './cluster-user.js';

describe('the database module', () => {
  it('stays open until all other modules have shut down, then stops the embedded PostgreSQL', async () => {
    const dataDir = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'database-module-'));
    await chmod(dataDir, 0o711);
    await copyTestCluster(dataDir);
    const environment = Object.assign(new Environment(), { DATA_DIR: dataDir });

    @Injectable()
    class Visitor implements OnApplicationShutdown {
      lastWords: unknown;

      constructor(@Inject(DataSource) readonly dataSource: DataSource) {}

      async onApplicationShutdown(): Promise<void> {
        this.lastWords = await this.dataSource.query('SELECT 2 AS last');
      }
    }

    @Global()
    @Module({ providers: [{ provide: Environment, useValue: environment }], exports: [Environment] })
    class EnvironmentModule {}

    @Module({ providers: [Visitor] })
    class VisitorModule {}

    try {
      const application = await Test.createTestingModule({
        imports: [
          EnvironmentModule,
          DatabaseModule.forRoot({ as: 'service', entities: [], migrations: [] }),
          VisitorModule,
        ],
      }).compile();
      const visitor = application.get(Visitor, { strict: false });
      expect(await visitor.dataSource.query('SELECT 1 AS first')).toEqual([{ first: 1 }]);

      await application.close();
      expect(visitor.lastWords).toEqual([{ last: 2 }]);
      expect(visitor.dataSource.isInitialized).toBe(false);
      expect(await postmasterPid(dataDir)).toBeUndefined();
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
