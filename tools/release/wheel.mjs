// Usage: node tools/release/wheel.mjs FOLDER: builds the wheel of clients/python there, without a network, and prints its path.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const SOURCES = ['LICENSE', 'README.md', 'pyproject.toml', 'src'];
/** The packages of Debian are for its own Python, also where another one comes first. */
const PYTHONS = ['python3', '/usr/bin/python3'];
/** Calls the hook of PEP 517. */
const BUILD = `
import contextlib, sys
from setuptools import build_meta
with contextlib.redirect_stdout(sys.stderr):
    name = build_meta.build_wheel(sys.argv[1])
print(name)
`;

const folder = resolve(process.argv[2]);
const python = PYTHONS.find((each) => spawnSync(each, ['-c', 'import setuptools, wheel']).status === 0);
if (!python) {
  console.error('The wheel of clients/python needs python3 with setuptools and wheel.');
  process.exit(2);
}
// setuptools writes beside the sources: here to a copy of them.
const copy = mkdtempSync(join(tmpdir(), 'channel-transcripts-wheel-'));
try {
  for (const path of SOURCES) {
    const filter = (file) => !/__pycache__|\.egg-info/.test(file);
    cpSync(join(import.meta.dirname, '../../clients/python', path), join(copy, path), { recursive: true, filter });
  }
  // So that the same sources make the same file.
  const env = { ...process.env, SOURCE_DATE_EPOCH: '315532800' };
  const name = execFileSync(python, ['-c', BUILD, folder], { cwd: copy, env, encoding: 'utf8', stdio: 'pipe' });
  console.log(join(folder, name.trim()));
} finally {
  rmSync(copy, { recursive: true, force: true });
}
