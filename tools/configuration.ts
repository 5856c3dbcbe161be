import { readFile, writeFile } from 'node:fs/promises';
import { Environment, VARIABLES } from '../src/config/environment.js';

export const PAGE = 'docs/configuration.md';

/** The page with the item of each variable generated from the schema of the configuration. The other text stays. */
export function withVariables(page: string): string {
  const missing = new Map(Object.entries(VARIABLES.shape));
  const defaults = new Map(Object.entries(new Environment()));
  const text = page.replace(/^- `([A-Z_]+)`.*$/gm, (_item, name: string) => {
    const variable = missing.get(name);
    if (!variable) throw new Error(`${PAGE} has an item of ${name}, which is no variable or has another item.`);
    missing.delete(name);
    return `- \`${name}\`${inParentheses(defaults.get(name))}: ${variable.description ?? ''}`;
  });
  if (missing.size > 0) throw new Error(`${PAGE} has no item of ${[...missing.keys()].join(', ')}.`);
  return text;
}

function inParentheses(value: unknown): string {
  return value === undefined ? '' : ` (\`${JSON.stringify(value).replace(/["[\]]/g, '')}\`)`;
}

if (process.argv[1] === import.meta.filename) await writeFile(PAGE, withVariables(await readFile(PAGE, 'utf8')));
