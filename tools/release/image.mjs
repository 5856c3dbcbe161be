// Usage: node tools/release/image.mjs IMAGE FOLDER: writes what a release has of a built image to the folder: the image as an
// archive, its digest, its list of packages and their licenses, and the Kubernetes base that names it by digest.
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const docker = (...args) => execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** Returns the digest that the image gets in a registry to which the archive is copied unchanged. */
export function writeImage(image, folder) {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, 'image.tar');
  docker('save', '--output', archive, image);
  const digest = digestOf(archive);
  writeFileSync(join(folder, 'image-digest.txt'), `${digest}\n`);
  const container = docker('create', '--network', 'none', image).trim();
  try {
    for (const file of ['sbom.json', 'THIRD-PARTY-LICENSES']) {
      docker('cp', '--quiet', `${container}:/app/dist/${file}`, join(folder, file));
    }
  } finally {
    docker('rm', container);
  }
  writeKubernetesBase(digest, folder);
  return digest;
}

/** An archive of Docker since 25 is an OCI layout, whose index names the manifest by its digest. */
function digestOf(archive) {
  const index = execFileSync('tar', ['-xOf', archive, 'index.json'], { encoding: 'utf8' });
  const digests = JSON.parse(index).manifests.map(({ digest }) => digest);
  if (digests.length === 1 && /^sha256:[0-9a-f]{64}$/.test(digests[0])) return digests[0];
  throw new Error(`${archive} has the manifests ${digests.join(', ')} instead of one.`);
}

/** An overlay adds `newName`, the name of the image in a registry; the digest stays. */
export function writeKubernetesBase(digest, folder) {
  const base = join(folder, 'kubernetes');
  cpSync('deploy/kubernetes/base', base, { recursive: true });
  appendFileSync(join(base, 'kustomization.yaml'), `images:\n  - name: channel-transcripts\n    digest: ${digest}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [image, folder] = process.argv.slice(2);
  if (!folder) throw new Error('Usage: node tools/release/image.mjs IMAGE FOLDER');
  console.log(writeImage(image, folder));
}
