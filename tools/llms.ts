import { readFile, writeFile } from 'node:fs/promises';

export const FILE = 'docs/llms.txt';

/** The pages for language models, in the form of llmstxt.org: what README.md says the project is, and the list of docs/README.md. */
export function llmsText(readme: string, pages: string): string {
  const [title = '', summary = ''] = readme.split('\n\n');
  const lists = pages
    .slice(pages.indexOf('\nTo ') + 1)
    // An item is one line.
    .replaceAll(/\n {2}/g, ' ')
    .replaceAll(/^(To .*):$/gm, '## $1');
  const notes =
    'A running service describes its API in OpenAPI at `/docs-json`, and its error codes at `/docs/errors`. The links are relative to `docs`.';
  return `${title}\n\n> ${summary.replaceAll('\n', ' ')}\n\n${notes}\n\n${lists}`;
}

export const generated = async (): Promise<string> =>
  llmsText(await readFile('README.md', 'utf8'), await readFile('docs/README.md', 'utf8'));

if (process.argv[1] === import.meta.filename) await writeFile(FILE, await generated());
