/*
 * The service itself with two more routes, whose controller returns a constant: behind the same guards, the same
 * validation and the same middleware, with nothing after them. `same-bytes` is as long as a real answer, and `buffer` is the
 * same from memory without Express' ETag, compressed in advance for callers that accept gzip.
 */
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Controller, Get, Header, Module, Query, Req, Res } from '@nestjs/common';
import { AuthModule } from '../../../dist/modules/auth/auth.module.js';
import { RequiresFeature } from '../../../dist/modules/auth/auth.decorators.js';
import { AppModule } from '../../../dist/modules/app.module.js';
import { TranscriptsQueryDto } from '../../../dist/modules/transcripts/dto/transcripts-query.dto.js';

const bytes = readFileSync(process.env.BODY_FILE);
const { channel, results } = JSON.parse(bytes);
const one = JSON.stringify({ channel, results: results.slice(0, 1) });
const compressed = gzipSync(bytes);

class ConstantController {
  sameBytes() {
    return one;
  }

  buffer(query, request, response) {
    const gzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    const sent = gzip ? compressed : bytes;
    if (gzip) response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Content-Length', sent.length);
    response.end(sent);
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
decorate('buffer', 'buffer');
Req()(ConstantController.prototype, 'buffer', 1);
Res()(ConstantController.prototype, 'buffer', 2);
RequiresFeature('channel_transcripts')(ConstantController);
Controller('constant')(ConstantController);

class ConstantModule {}
Module({ imports: [AuthModule], controllers: [ConstantController] })(ConstantModule);

const wire = AppModule.with.bind(AppModule);
AppModule.with = (environment) => {
  const wired = wire(environment);
  // The first, as routes are tried one after the other: the measured routes of the service are among the first too.
  return { ...wired, imports: [ConstantModule, ...wired.imports] };
};
await import('../../../dist/modules/main.js');
