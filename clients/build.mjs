// Builds the package of the current folder twice, as an ES module and as CommonJS, each with its types.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const FORMATS = {
  esm: { type: 'module', options: ['--module', 'nodenext', '--moduleResolution', 'nodenext'] },
  cjs: { type: 'commonjs', options: ['--module', 'commonjs', '--moduleResolution', 'bundler'] },
};

rmSync('dist', { recursive: true, force: true });
for (const [name, { type, options }] of Object.entries(FORMATS)) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', '.', ...options, '--outDir', `dist/${name}`], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(1);
  writeFileSync(`dist/${name}/package.json`, `${JSON.stringify({ type })}\n`);
}
