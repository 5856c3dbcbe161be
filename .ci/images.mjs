// Warns of each image that is named by a tag alone: what a tag names can change between two starts. Reads the files of the
// current folder and the variables of .env. A warning is no failure, since a tag is a choice that an operator may make.
import { existsSync, readFileSync } from 'node:fs';

const DIGEST = /@sha256:[0-9a-f]{64}$/;

const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const set = Object.fromEntries([...read('.env').matchAll(/^(\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]));

const images = [
  ...[...read('docker-compose.yml').matchAll(/^ +image: \$\{(\w+):-([^}]+)\}$/gm)].map(([, variable, image]) => ({
    image: set[variable] ?? image,
    where: `${variable} in .env`,
  })),
  ...[...read('Dockerfile').matchAll(/^ARG (NODE_IMAGE)=(\S+)$/gm)].map(([, variable, image]) => ({
    image,
    where: `ARG ${variable} in the Dockerfile`,
  })),
];
if (images.length === 0) throw new Error('No image was found in docker-compose.yml and the Dockerfile.');

const byTag = images.filter(({ image }) => !DIGEST.test(image));
for (const { image, where } of byTag) {
  console.warn(`warning: ${image} is named by its tag. Set ${where} to ${image}@sha256:…, as this prints it:`);
  console.warn(`  docker buildx imagetools inspect ${image} --format '{{.Manifest.Digest}}'`);
}
console.log(`${images.length - byTag.length} of ${images.length} images are named by digest.`);
