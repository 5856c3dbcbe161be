import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { Environment, VARIABLES } from '../src/config/environment.js';

export const PAGE = 'docs/configuration.md';

/** The page with the row of each variable generated from the schema of the configuration. The other text stays. */
export async function withTables(page: string): Promise<string> {
  const missing = new Map(Object.entries(VARIABLES.shape));
  const defaults = new Map(Object.entries(new Environment()));
  const text = page.replace(/^\| `([A-Z_]+)` .*$/gm, (_row, name: string) => {
    const variable = missing.get(name);
    if (!variable) throw new Error(`${PAGE} has a row of ${name}, which is no variable or has another row.`);
    missing.delete(name);
    return `| \`${name}\` | ${inCode(defaults.get(name))} | ${variable.description ?? ''} |`;
  });
  if (missing.size > 0) throw new Error(`${PAGE} has no row of ${[...missing.keys()].join(', ')}.`);
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' });
}

function inCode(value: unknown): string {
  return value === undefined ? 'unset' : `\`${JSON.stringify(value).replace(/["[\]]/g, '')}\``;
}

if (process.argv[1] === import.meta.filename) await writeFile(PAGE, await withTables(await readFile(PAGE, 'utf8')));
