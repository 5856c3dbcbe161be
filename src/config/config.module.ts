import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Environment } from './environment.js';

/** Gives the checked configuration to whoever injects `Environment`. */
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
