import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { Environment, SECTIONS } from '../src/config/environment.js';

export const PAGE = 'docs/configuration.md';

/** The page with the table of each section generated from the schema of the configuration. The other text stays. */
export async function withTables(page: string): Promise<string> {
  const defaults = new Map(
    Object.entries(new Environment()).map(([name, value]: [string, unknown]) => [name, inCode(value)]),
  );
  let text = page;
  for (const [title, variables] of Object.entries(SECTIONS)) {
    const rows = Object.entries(variables).map(([name, { description = '' }]) => {
      return `| \`${name}\` | ${defaults.get(name) ?? 'unset'} | ${description} |\n`;
    });
    const table = new RegExp(`(?<=^## ${title}\n(?:(?!## ).*\n)*)(?:\\| variable .*\n\\| -.*\n)(?:\\|.*\n)*`, 'm');
    if (!table.test(text)) throw new Error(`${PAGE} has no table of variables under the heading "${title}".`);
    text = text.replace(table, () => `| variable | default | meaning |\n| --- | --- | --- |\n${rows.join('')}`);
  }
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' });
}

function inCode(value: unknown): string {
  return `\`${JSON.stringify(value).replace(/["[\]]/g, '')}\``;
}

if (process.argv[1] === import.meta.filename) await writeFile(PAGE, await withTables(await readFile(PAGE, 'utf8')));
