/*
 * The service itself with two more routes, whose controller returns a constant: behind the same guards, the same
 * validation and the same middleware, with nothing after them. `same-bytes` is as long as a real answer.
 */
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { Controller, Get, Header, Module, Query } from '@nestjs/common';
import { AuthModule } from '../../../dist/modules/auth/auth.module.js';
import { RequiresFeature } from '../../../dist/modules/auth/guarded.decorator.js';
import { AppModule } from '../../../dist/modules/app.module.js';
import { TranscriptsQueryDto } from '../../../dist/modules/channels/dto/transcripts-query.dto.js';

const body = readFileSync(process.env.BODY_FILE, 'utf8');

class ConstantController {
  sameBytes() {
    return body;
  }

  short() {
    return { ok: true };
  }
}

function decorate(name, path) {
  const { prototype } = ConstantController;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  Reflect.defineMetadata('design:paramtypes', [TranscriptsQueryDto], prototype, name);
  Query()(prototype, name, 0);
  Header('Content-Type', 'application/json')(prototype, name, descriptor);
  Get(path)(prototype, name, descriptor);
}

decorate('sameBytes', 'same-bytes');
decorate('short', 'short');
RequiresFeature('channel_transcripts')(ConstantController);
Controller('constant')(ConstantController);

class ConstantModule {}
Module({ imports: [AuthModule], controllers: [ConstantController] })(ConstantModule);

const wire = AppModule.with.bind(AppModule);
AppModule.with = (environment) => {
  const wired = wire(environment);
  return { ...wired, imports: [...wired.imports, ConstantModule] };
};
await import('../../../dist/modules/main.js');
