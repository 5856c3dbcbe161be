import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Whether the PATH has this program. To start it would take up to a second each time a test file is loaded. */
export function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
