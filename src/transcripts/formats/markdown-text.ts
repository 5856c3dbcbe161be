import { lineText } from './line-text.js';

/**
 * Characters that CommonMark, GitHub's and Obsidian's Markdown can read as markup within a line: emphasis, code, links, HTML,
 * entities, tables, tags, mentions, formulas, and bare URLs. Markup at the start of a line is not among them, because no
 * line of our documents starts with outside text.
 */
const MARKUP = /[\\`*_[\]<~$#|@]|&(?=#?[0-9a-z]+;)|:(?=\/\/)|(?<=www)\.|[=%](?=[=%])/gi;

/** Outside text as literal text within a line of Markdown. */
export function escapeMarkdown(text: string): string {
  return lineText(text).replace(MARKUP, (character) => `\\${character}`);
}

const OUTSIDE_URLS = /[^\w\-.~:/?#@!$&+,;=%]+/g;
const NOT_ENCODED = /['()*]/g;

/** The destination of a link or an autolink: characters that would end it, or that no URL contains, are percent-encoded. */
export function linkDestination(url: string): string {
  return lineText(url).replace(OUTSIDE_URLS, (run) =>
    encodeURIComponent(run).replace(
      NOT_ENCODED,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  );
}
