import 'reflect-metadata';
import { readFile, writeFile } from 'node:fs/promises';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../src/app.module.js';
import { Environment } from '../src/config/environment.js';
import { Routes, type Route } from '../src/http/routes/routes.js';

export const CONFIGURATION = 'deploy/nginx.conf';

const GENERATED = /(\n *# Written by npm run proxy:routes\.\n)[^#]*(\n *# The documentation)/;

/** The configuration with a line for each route of the controllers that the proxy passes on. The other text stays. */
export async function withRoutes(configuration: string): Promise<string> {
  if (!GENERATED.test(configuration)) throw new Error(`${CONFIGURATION} has no place for the routes.`);
  // With any values, so that the routes under /admin and those of signing in exist.
  const environment = Object.assign(new Environment(), { ADMIN_TOKEN: '-', OIDC_ISSUER: '-' });
  const app = await NestFactory.create(AppModule.with(environment), { preview: true, logger: ['error'] });
  const lines = new Set(Routes.preview(app).all.flatMap(lineOf));
  await app.close();
  return configuration.replace(GENERATED, (_all, start: string, end: string) => start + [...lines].join('\n') + end);
}

function lineOf({ path, audience, rawUrlId }: Route): string[] {
  const pattern = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, rawUrlId === undefined ? '[^/?]+' : '.+');
  return audience === 'internal' ? [] : [`        '~^${pattern}(?:\\?|$)' ${audience};`];
}

if (process.argv[1] === import.meta.filename)
  await writeFile(CONFIGURATION, await withRoutes(await readFile(CONFIGURATION, 'utf8')));
