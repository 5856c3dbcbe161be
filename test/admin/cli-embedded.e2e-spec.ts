import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCli } from './run-cli.js';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'cli-embedded-'));
  await chmod(dataDir, 0o711);
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const create = ['org', 'create', '--name', 'Acme', '--plan', 'pro', '--json'];

describe('an admin command on the embedded database', () => {
  it('works without a running service, even as the first process', async () => {
    const { code, errorOutput } = await runCli(create, { DATA_DIR: dataDir });
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    const { output } = await runCli(['org', 'list'], { DATA_DIR: dataDir });
    expect(output).toContain('Acme');
  });
});
