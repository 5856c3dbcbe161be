import { type DynamicModule, Inject, Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { type DatabaseOptions, openDatabase, type OpenDatabase, overdueStatements } from './data-source.js';

const OPEN_DATABASE = Symbol('OpenDatabase');

/** Provides TypeORM's `DataSource` to the whole application, migrated and ready, and closes it after HTTP has closed. */
@Module({})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(@Inject(OPEN_DATABASE) private readonly database: OpenDatabase) {}

  /** Requires a global provider of `Environment`. */
  static forRoot(options: DatabaseOptions): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        {
          provide: OPEN_DATABASE,
          inject: [Environment],
          useFactory: (environment: Environment) => openDatabase(environment, options),
        },
        { provide: DataSource, inject: [OPEN_DATABASE], useFactory: (database: OpenDatabase) => database.dataSource },
      ],
      exports: [DataSource],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    try {
      await this.database.close();
    } catch (error) {
      new Logger(DatabaseModule.name).error('The database could not be closed cleanly.', error);
    }
  }
}

/** Locks no row, but fails on a read-only server, which closes the connection: a failover may have happened. */
const CAN_WRITE = 'SELECT FROM organizations WHERE false FOR UPDATE';
/** Writes a file of a few hundred bytes, which PostgreSQL removes at the end of the statement: fails when its disk is full. */
const HAS_SPACE = 'SELECT pg_export_snapshot()';

/** @throws when the database does not respond, or does not accept writes: also when a commit does not end, as without its standby */
export async function checkDatabase(database: DataSource): Promise<void> {
  await database.query(CAN_WRITE);
  await database.query(HAS_SPACE);
  const [row] = await database.query<{ overdue: number }[]>(overdueStatements());
  if (row?.overdue !== 0) throw new Error('Statements do not end.');
}
