import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { NOT_INSTALLED, namedExports } from '../../tools/bundled-packages.mjs';

const root = join(import.meta.dirname, '../..');

/**
 * The packages of many files. One with state, such as those of NestJS, is here with all that import it, so that there is one
 * copy of it.
 */
const NAMES = [
  ...['cache-manager', 'common', 'core', 'microservices', 'platform-express', 'swagger', 'testing'].map(
    (name) => `@nestjs/${name}`,
  ),
  ...['@modelcontextprotocol/node', '@modelcontextprotocol/server', 'class-transformer'],
  ...['class-validator', 'entities', 'es-toolkit/compat', 'express', 'jose', 'pg', 'pino', 'prom-client'],
  ...['rate-limiter-flexible', 'rxjs', 'rxjs/operators', 'typeorm', 'undici', 'zod', 'zod/v4'],
];

/**
 * Bundles the packages with the most files. Jest loads every module again for each test file: two thousand of the three thousand
 * that a test of the service loads are of these. They are made anew when the lockfile or this file has changed.
 *
 * @returns the file of each package, as `moduleNameMapper` wants it
 */
export async function bundledPackages() {
  const hash = createHash('sha256');
  for (const file of [import.meta.filename, join(root, 'package-lock.json')]) hash.update(await readFile(file));
  const cache = join(root, 'node_modules/.cache/test-packages');
  const folder = join(cache, hash.digest('hex').slice(0, 16));
  if (!existsSync(folder)) {
    await mkdir(cache, { recursive: true });
    const aside = await mkdtemp(`${folder}-`);
    await bundle(aside);
    // Another process may have been faster.
    await rename(aside, folder).catch(() => rm(aside, { recursive: true }));
  }
  return Object.fromEntries(NAMES.map((name) => [`^${name}$`, join(folder, `${fileOf(name)}.mjs`)]));
}

const fileOf = (name) => name.replaceAll('/', '-');

async function bundle(folder) {
  const entryPoints = {};
  for (const name of NAMES) {
    entryPoints[fileOf(name)] = join(folder, `${fileOf(name)}.entry.mjs`);
    // By name, since esbuild knows no named exports of a CommonJS package.
    const names = Object.keys(await import(name)).filter((each) => !['__esModule', 'module.exports'].includes(each));
    await writeFile(entryPoints[fileOf(name)], `export { ${names.join(', ')} } from '${name}';\n`);
  }
  await build({
    entryPoints,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    keepNames: true,
    minifyWhitespace: true,
    logLevel: 'error',
    external: ['@opentelemetry/api', 'reflect-metadata', 'swagger-ui-dist', ...NOT_INSTALLED],
    plugins: [namedExports],
    banner: {
      js: [
        "import { createRequire as createRequireOfBundle } from 'node:module';",
        'const require = createRequireOfBundle(import.meta.url);',
        'const __filename = import.meta.filename, __dirname = import.meta.dirname;',
      ].join('\n'),
    },
  });
}
