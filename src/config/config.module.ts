import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Environment } from './environment.js';

/** Provides the validated configuration as `Environment`. */
@Global()
@Module({})
export class ConfigModule {
  static forRoot(environment: Environment): DynamicModule {
    return {
      module: ConfigModule,
      providers: [{ provide: Environment, useValue: environment }],
      exports: [Environment],
    };
  }
}
