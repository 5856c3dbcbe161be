import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '../../src/config/package.js';
import { SATURDAY } from '../fake-youtube/catalogue/playlists.js';
import { isInstalled } from '../harness/programs.js';
import { startService, type TestService } from '../harness/service.js';
import { temporaryFolder } from '../process/program.js';

const PROJECT = join(import.meta.dirname, '../..');
const CLIENT = join(PROJECT, 'clients/python');

const canRun = isInstalled('python3');
const canBuild = ['python3', '/usr/bin/python3'].some(
  (python) => spawnSync(python, ['-c', 'import setuptools, wheel']).status === 0,
);

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Runs a program beside the service of this process, and returns what it printed. */
async function run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const all = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', MYPYPATH: 'src:tests', ...env };
  const ran = await promisify(execFile)(program, args, { cwd: CLIENT, env: all, maxBuffer: 20_000_000 }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${program} failed.\n${error.stdout}\n${error.stderr}`);
    },
  );
  return ran.stdout + ran.stderr;
}

(canRun ? describe : describe.skip)('the Python client', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('does what its tests state, with the running service', async () => {
    const [pro, free] = [await service.organization(), await service.organization({ plan: 'free' })];
    const ran = await run('python3', ['-m', 'unittest', 'discover', '-s', 'tests'], {
      PYTHONPATH: 'src',
      CHANNEL_TRANSCRIPTS_URL: service.url,
      CHANNEL_TRANSCRIPTS_KEY: pro.key,
      CHANNEL_TRANSCRIPTS_FREE_KEY: free.key,
      FAKE_YOUTUBE_URL: service.fakeYoutube.url,
      PLAYLIST: SATURDAY.id,
    });
    expect(ran).toMatch(/^Ran [1-9]\d+ tests in [\d.]+s\n\nOK\n$/m);
  });
});

(isInstalled('mypy') ? describe : describe.skip)('the types of the Python client', () => {
  it('are accepted by mypy --strict, for the standard library of Python 3.9', async () => {
    expect(await run('mypy', ['--cache-dir', join(folder.path, 'mypy'), 'src', 'tests'])).toMatch(/^Success: /);
  });
});

(canBuild ? describe : describe.skip)('the wheel of the Python client', () => {
  it('is built without a network, and is all that a program needs', async () => {
    const [wheel = ''] = (await run('node', [join(PROJECT, 'tools/release/wheel.mjs'), folder.path])).split('\n');
    expect(wheel).toBe(join(folder.path, `channel_transcripts-${VERSION}-py3-none-any.whl`));
    const program = [
      'import importlib.resources, sys, zipfile',
      'from channel_transcripts import Client',
      'from channel_transcripts.youtube_transcript_api import YouTubeTranscriptApi, formatters, proxies',
      'files = zipfile.ZipFile(sys.argv[1]).namelist()',
      'print("channel_transcripts/py.typed" in files, [name for name in files if "test" in name])',
    ].join('\n');
    // `-I`: neither the sources beside it nor what the environment names.
    const isolated = ['-I', '-c', `import sys\nsys.path.insert(0, sys.argv[1])\n${program}`, wheel];
    expect(await run('python3', isolated)).toBe('True []\n');
  });
});
