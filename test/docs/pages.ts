import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import MarkdownIt, { type Token } from 'markdown-it';

export const PROJECT = join(import.meta.dirname, '../..');
/** The word after the language of a shell block that no test runs. It is not shown to readers. */
const NOT_RUN = 'not-run';
const FOLDERS = [
  '.',
  'docs',
  'docs/decisions',
  'clients/typescript',
  'clients/nest',
  'clients/nest-consumer',
  'clients/python',
];

/** Every page, by its path in the project. */
export const PAGES = [...FOLDERS, 'test/fake-youtube'].flatMap((folder) =>
  readdirSync(join(PROJECT, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => join(folder, file)),
);

/** A fenced block of a page. */
export interface Block {
  name: string;
  page: string;
  language: string;
  code: string;
  isRun: boolean;
  /** The file that it is, by a text before it such as "As `receiver.mjs`". */
  file: string | undefined;
  /** The block of text that follows in the same section: what this one prints. */
  prints: string | undefined;
}

const tokensOf = (page: string): Token[] => new MarkdownIt().parse(readFileSync(join(PROJECT, page), 'utf8'), {});

export function blocksOf(page: string): Block[] {
  const tokens = tokensOf(page);
  return tokens.flatMap((token, index) => {
    if (token.type !== 'fence') return [];
    const [language = '', mark] = token.info.split(' ');
    const before = tokens[index - 1]?.type === 'paragraph_close' ? tokens[index - 2] : undefined;
    const next = tokens.slice(index + 1).find(({ type }) => type === 'fence' || type === 'heading_open');
    const block: Block = {
      name: `${page}, line ${(token.map?.[0] ?? 0) + 1}`,
      page,
      language,
      code: token.content,
      isRun: mark !== NOT_RUN,
      file: /^As `([^`]+)`/.exec(before?.content ?? '')?.[1],
      prints: next?.info === 'text' ? next.content : undefined,
    };
    return [block];
  });
}

/** The text of a page without its blocks. */
export const proseOf = (page: string): string =>
  tokensOf(page)
    .flatMap(({ type, content }) => (type === 'inline' ? [content] : []))
    .join('\n');

/** The targets of the links and images of a page. */
export const linksOf = (page: string): string[] =>
  tokensOf(page)
    .flatMap(({ children }) => children ?? [])
    .flatMap((token) => token.attrGet('href') ?? token.attrGet('src') ?? []);

/** The anchors of the headings of a page, as GitHub makes them. */
export function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const { content } of headings(tokensOf(page))) {
    const text = content.replaceAll(/[`*]|\]\([^)]*\)|\[/g, '').toLowerCase();
    const anchor = text.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let number = 1; anchors.has(unique); number++) unique = `${anchor}-${number}`;
    anchors.add(unique);
  }
  return anchors;
}

const headings = (tokens: readonly Token[]): Token[] =>
  tokens.filter((_, index) => tokens[index - 1]?.type === 'heading_open');
