import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of the nearest package.json: a bundle and its single modules are at different depths below it. */
export const PACKAGE_FOLDER = nearestPackage(import.meta.dirname);

/** The one version: of the service, its API and its packages for callers. */
export const VERSION = readVersion(join(PACKAGE_FOLDER, 'package.json'));

function nearestPackage(folder: string): string {
  const above = dirname(folder);
  return existsSync(join(folder, 'package.json')) || above === folder ? folder : nearestPackage(above);
}

function readVersion(file: string): string {
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
  throw new Error(`${file} has no version.`);
}
