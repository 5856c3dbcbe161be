import { writeFileSync } from 'node:fs';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Environment } from './config/environment.js';
import { createDocument } from './openapi.js';

/** Writes the OpenAPI document to a file. In Nest's preview mode the routes exist, but no provider is created. */
async function write(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('Usage: node dist/openapi-file.js FILE');
  // With any values, so that the operations under /admin and those of signing in are in the document.
  const environment = Object.assign(new Environment(), { ADMIN_TOKEN: '-', OIDC_ISSUER: '-' });
  const app = await NestFactory.create(AppModule.with(environment), { preview: true, logger: ['error'] });
  writeFileSync(file, `${JSON.stringify(createDocument(app), null, 2)}\n`);
  await app.close();
}

write(process.argv[2]).catch((error: unknown) => {
  process.stderr.write(`channel-transcripts: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
