import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const packageJson = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;

interface Instruction {
  name: string;
  rest: string;
}

/** The stages of the Dockerfile, each from its FROM on. */
const stages = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, ' ')
  .split(/^(?=FROM )/m)
  .slice(1)
  .map((stage) =>
    stage
      .trim()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line): Instruction => {
        const [name = '', ...rest] = line.trim().split(' ');
        return { name, rest: rest.join(' ') };
      }),
  );
const last = stages.at(-1) ?? [];
const of = (name: string, stage = last): string[] =>
  stage.filter((instruction) => instruction.name === name).map(({ rest }) => rest);
const stageNamed = (name: string): Instruction[] =>
  stages.find((stage) => stage[0]?.rest.endsWith(` AS ${name}`)) ?? [];

/** Every package that the built service imports, statically or dynamically. */
function importedPackages(kind: 'static' | 'dynamic'): Set<string> {
  const pattern =
    kind === 'static' ? /^(?:import (?:[^;'"=]* from )?|export [^;'"=]* from )'([^']+)';/gm : /\bimport\('([^']+)'\)/g;
  const files = readdirSync(join(PROJECT, 'dist'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.js'),
  );
  const names = files.flatMap((file) => [...read(join('dist', file)).matchAll(pattern)].map(([, name = '']) => name));
  const packages = names.filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
  return new Set(
    packages.map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    ),
  );
}

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

  it('installs the exact versions of the lockfile, and runs with production packages only', () => {
    const installs = stages.flatMap((stage) => of('RUN', stage)).filter((run) => run.includes('npm'));
    expect(installs.filter((run) => /npm (?:install|i)\b/.test(run))).toEqual([]);
    expect(of('RUN', stageNamed('dependencies')).join()).toMatch(/npm ci --omit=dev --omit=optional /);
    expect(of('COPY').filter((copy) => copy.includes('node_modules'))).toEqual([
      '--from=dependencies /app/node_modules ./node_modules',
    ]);
    expect(of('RUN')).toEqual([]);
  });

  it('contains every package that the service imports', () => {
    const { dependencies = {}, optionalDependencies = {} } = packageJson;
    const builtIn = new Set(builtinModules);
    const needed = [...importedPackages('static')].filter((name) => !builtIn.has(name));
    expect(needed.length).toBeGreaterThan(10);
    expect(needed.filter((name) => !(name in dependencies))).toEqual([]);
    const later = [...importedPackages('dynamic')];
    expect(later.filter((name) => !(name in dependencies) && !(name in optionalDependencies))).toEqual([]);
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
