import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isInstalled } from '../harness/programs.js';
import { temporaryFolder } from '../process/program.js';

const PROJECT = join(import.meta.dirname, '../..');
const DIGEST = `sha256:${'5e'.repeat(32)}`;

/** A project that builds in no time. */
const FILES = {
  'package.json': JSON.stringify({
    version: '1.2.3',
    scripts: {
      build: 'mkdir -p dist && touch dist/sbom.json dist/THIRD-PARTY-LICENSES && cp write.js dist/openapi-file.js',
      'clients:pack': 'touch client.tgz nest.tgz && printf "$PWD/%s\\n" client.tgz nest.tgz',
    },
  }),
  'write.js': "require('fs').writeFileSync(process.argv[2], '{}');",
  'CHANGELOG.md': '# Change log\n\n## [Unreleased]\n\n## [1.2.3] - 2026-12-01\n',
  '.gitignore': '/release/\ndist/\n*.tgz\nbin/\n',
};
/** Answers as Docker does. */
const DOCKER = `#!/bin/sh
case $1 in
  build) echo "$@" >bin/build ;;
  save) printf '{"manifests":[{"digest":"${DIGEST}"}]}' >index.json && tar -cf "$3" index.json && rm index.json ;;
  create) echo container ;;
  cp) echo "from the image" >"$4" ;;
esac
`;
/** Builds the wheel as setuptools does. */
const PYTHON = `#!/bin/sh
[ -z "$3" ] || { touch "$3/client.whl" && echo client.whl; }
`;
const NO_DOCKER = '#!/bin/sh\nexit 1\n';

let folder: ReturnType<typeof temporaryFolder>;
const write = (file: string, text: string, mode?: number): void => {
  mkdirSync(dirname(join(folder.path, file)), { recursive: true });
  writeFileSync(join(folder.path, file), text, { mode });
};
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], { cwd: folder.path });

beforeEach(() => {
  folder = temporaryFolder();
  for (const [file, text] of Object.entries(FILES)) write(file, text);
  for (const path of ['tools/release', 'deploy/kubernetes/base', 'deploy/server.json', 'clients/python']) {
    cpSync(join(PROJECT, path), join(folder.path, path), { recursive: true });
  }
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Begin');
});
afterEach(() => folder.remove());

function release(docker: string, ...options: string[]) {
  write('bin/docker', docker, 0o755);
  write('bin/python3', PYTHON, 0o755);
  const env = { ...process.env, PATH: `${join(folder.path, 'bin')}:${process.env['PATH']}` };
  const args = ['tools/release/release.mjs', ...options];
  return spawnSync(process.execPath, args, { cwd: folder.path, env, encoding: 'utf8' });
}

const released = (): string[] => readdirSync(join(folder.path, 'release/1.2.3')).sort();
const WITHOUT_IMAGE = [
  'SHA256SUMS',
  'THIRD-PARTY-LICENSES',
  'client.tgz',
  'client.whl',
  'nest.tgz',
  'openapi.json',
  'sbom.json',
];

(isInstalled('git') ? describe : describe.skip)('npm run release', () => {
  it('refuses a tree with changes, a version without an entry in the change log, and an unknown option', () => {
    write('CHANGELOG.md', '# Change log\n\n## [Unreleased]\n');
    write('new.txt', '');
    const { status, stderr } = release(DOCKER);
    expect(status).toBe(2);
    expect(stderr).toContain('changes that are not committed:\n M CHANGELOG.md\n?? new.txt');
    expect(stderr).toContain('CHANGELOG.md has no entry "## [1.2.3] - DATE".');
    expect(release(DOCKER, '--force')).toMatchObject({ status: 2, stderr: 'The only option is --without-image.\n' });
    expect(readdirSync(folder.path)).not.toContain('release');
  });

  it('writes the image as an archive, and the Kubernetes base with its digest', () => {
    expect(release(DOCKER)).toMatchObject({ status: 0, stderr: '' });
    expect(released()).toEqual([...WITHOUT_IMAGE, 'image-digest.txt', 'image.tar', 'kubernetes'].sort());
    const text = (file: string): string => readFileSync(join(folder.path, 'release/1.2.3', file), 'utf8');
    expect(text('image-digest.txt')).toBe(`${DIGEST}\n`);
    expect(text('kubernetes/kustomization.yaml')).toContain(`- name: channel-transcripts\n    digest: ${DIGEST}\n`);
    expect([text('sbom.json'), text('THIRD-PARTY-LICENSES')]).toEqual(['from the image\n', 'from the image\n']);
    expect(text('SHA256SUMS').match(/^[0-9a-f]{64} {2}.+$/gm)?.length).toBeGreaterThan(10);
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(folder.path, 'release/1.2.3') });
  });

  it('names the owner of the repository in server.json and in the label of the image, or leaves both out', () => {
    const text = (file: string): string => readFileSync(join(folder.path, file), 'utf8');
    expect(release(DOCKER).stdout).toContain('Left out: server.json. For the registry of MCP servers set "repository"');
    expect(text('bin/build')).not.toContain('io.modelcontextprotocol');
    for (const repository of [
      'github:Harbour/boats',
      { type: 'git', url: 'git+https://github.com/Harbour/boats.git' },
    ]) {
      write('package.json', JSON.stringify({ ...JSON.parse(FILES['package.json']), repository }));
      git('commit', '--quiet', '--all', '--message', 'Name the repository');
      expect(release(DOCKER)).toMatchObject({ status: 0, stderr: '' });
      const server = text('release/1.2.3/server.json');
      expect(server).not.toContain('OWNER');
      expect(JSON.parse(server)).toMatchObject({
        name: 'io.github.Harbour/channel-transcripts',
        packages: [{ identifier: expect.stringMatching(/^ghcr\.io\/harbour\/channel-transcripts:/) }],
      });
      expect(text('bin/build')).toContain('io.modelcontextprotocol.server.name=io.github.Harbour/channel-transcripts ');
      expect(text('release/1.2.3/SHA256SUMS')).toContain('  server.json\n');
    }
  });

  it('says what it leaves out without Docker, and fails unless that is asked for', () => {
    const failed = release(NO_DOCKER);
    expect([failed.status, released()]).toEqual([1, WITHOUT_IMAGE]);
    expect(failed.stderr).toContain('Left out, because Docker does not run here: the image, and the Kubernetes base');
    const asked = release(NO_DOCKER, '--without-image');
    expect([asked.status, asked.stderr, released()]).toEqual([0, '', WITHOUT_IMAGE]);
    // Where `clients:pack` printed that they are, for programs that installed them by these paths.
    expect(readdirSync(folder.path)).toEqual(expect.arrayContaining(['client.tgz', 'nest.tgz']));
    expect(asked.stdout).toContain('release/1.2.3/client.tgz\nrelease/1.2.3/client.whl\nrelease/1.2.3/nest.tgz\n');
    expect(asked.stdout).toContain('Left out (--without-image): the image, and the Kubernetes base');
  });
});
