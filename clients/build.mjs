// Builds the package of the current folder twice, as an ES module and as CommonJS, each with its types.
import { spawnSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import ts from 'typescript';
import { replaceFolder } from '../tools/replace-folder.mjs';

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

await replaceFolder(resolve('dist'), async (folder) => {
  const [esm, cjs] = [join(folder, 'esm'), join(folder, 'cjs')];
  const { status } = spawnSync(process.execPath, [tsc, '-p', '.', '--outDir', esm], { stdio: 'inherit' });
  if (status !== 0) throw new Error('tsc failed.');
  await mkdir(cjs);
  await compileToCommonJs(cjs);
  for (const file of await readdir(esm)) if (file.endsWith('.d.ts')) await cp(join(esm, file), join(cjs, file));
  await writeFile(join(esm, 'package.json'), '{"type":"module"}\n');
  await writeFile(join(cjs, 'package.json'), '{"type":"commonjs"}\n');
});

/** Without a check of the types, which is made for the ES module, and takes most of the time. */
async function compileToCommonJs(folder) {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile('tsconfig.json', ts.sys.readFile).config,
    ts.sys,
    '.',
  );
  const compilerOptions = {
    ...options,
    module: ts.ModuleKind.CommonJS,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  for (const fileName of await readdir('src')) {
    const { outputText } = ts.transpileModule(await readFile(join('src', fileName), 'utf8'), {
      compilerOptions,
      fileName,
    });
    await writeFile(join(folder, fileName.replace(/ts$/, 'js')), outputText);
  }
}
