// Compiles src, test and tools file by file into dist-tools, for the demo, the fake YouTube and the tools.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { replaceFolder } from './replace-folder.mjs';

const root = join(import.meta.dirname, '..');
const SWC = join(root, 'node_modules/@swc/cli/bin/swc.js');

// What is not code is of `npm run start:dev`, which puts it there.
await replaceFolder(join(root, 'dist-tools'), compile, (file) => !/\.js(?:\.map)?$/.test(file));

function compile(folder) {
  const args = ['src', 'test', 'tools', '--extensions', '.ts', '--ignore', '**/node_modules/**', '--quiet'];
  args.push('--out-dir', folder, '--config-file', 'tools/swc.json', '--source-maps', 'inline');
  const { status } = spawnSync(process.execPath, [SWC, ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error('swc failed.');
}
