// Usage: npm run release [-- --without-image]: writes what a release consists of to release/VERSION, for an owner to sign and publish as
// docs/releasing.md describes. Nothing is sent anywhere.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { writeImage } from './image.mjs';

const OPTION = '--without-image';
const options = process.argv.slice(2);
if (options.some((option) => option !== OPTION)) stop([`The only option is ${OPTION}.`]);

const run = (program, ...args) => execFileSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
const output = (program, ...args) => execFileSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 26 }).trimEnd();
const { version, repository } = JSON.parse(readFileSync('package.json', 'utf8'));
const folder = join('release', version);

const faults = [];
const changes = output('git', 'status', '--porcelain');
if (changes) faults.push(`The working tree has changes that are not committed:\n${changes}`);
const entry = new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm');
if (!entry.test(readFileSync('CHANGELOG.md', 'utf8')))
  faults.push(`CHANGELOG.md has no entry "## [${version}] - DATE".`);
if (faults.length > 0) stop(faults);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
run('npm', 'run', '--silent', 'build');
for (const file of ['sbom.json', 'THIRD-PARTY-LICENSES']) copyFileSync(join('dist', file), join(folder, file));
run(process.execPath, 'dist/openapi-file.js', join(folder, 'openapi.json'));
for (const file of output('npm', 'run', '--silent', 'clients:pack').split('\n')) {
  copyFileSync(file, join(folder, basename(file)));
}
output(process.execPath, 'tools/release/wheel.mjs', folder);

// The registry of MCP servers accepts names of the GitHub account that publishes, and images whose label repeats the name.
const owner = /^(?:github:|(?:git\+)?https:\/\/github\.com\/)?([\w-]+)\/[\w.-]+$/.exec(
  repository?.url ?? repository,
)?.[1];
const labels = [`version=${version}`, `revision=${output('git', 'rev-parse', 'HEAD')}`].map(
  (label) => `org.opencontainers.image.${label}`,
);
if (owner) {
  const server = readFileSync('deploy/server.json', 'utf8').replaceAll(
    'ghcr.io/OWNER',
    `ghcr.io/${owner.toLowerCase()}`,
  );
  writeFileSync(join(folder, 'server.json'), server.replace('OWNER', owner));
  labels.push(`io.modelcontextprotocol.server.name=${JSON.parse(server).name.replace('OWNER', owner)}`);
} else {
  console.log(
    'Left out: server.json. For the registry of MCP servers set "repository" in package.json to "github:OWNER/REPOSITORY".',
  );
}

const image = `channel-transcripts:${version}`;
let isComplete = options.includes(OPTION);
if (isComplete) {
  console.log(`Left out (${OPTION}): the image, and the Kubernetes base that names its digest.`);
} else if (spawnSync('docker', ['version'], { stdio: 'ignore' }).status !== 0) {
  console.error(
    `Left out, because Docker does not run here: the image, and the Kubernetes base that names its digest. ${OPTION} leaves them out on purpose.`,
  );
} else {
  run('docker', 'build', '--tag', image, ...labels.flatMap((label) => ['--label', label]), '.');
  console.log(`${image} is ${writeImage(image, folder)}`);
  isComplete = true;
}

const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
const paths = files.map((file) => join(file.parentPath, file.name).slice(folder.length + 1)).sort();
// Signing this one file signs them all.
writeFileSync(join(folder, 'SHA256SUMS'), paths.map((path) => `${sha256(join(folder, path))}  ${path}\n`).join(''));
console.log([...paths, 'SHA256SUMS'].map((path) => join(folder, path)).join('\n'));
process.exitCode = isComplete ? 0 : 1;

function sha256(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function stop(reasons) {
  for (const reason of reasons) console.error(reason);
  process.exit(2);
}
