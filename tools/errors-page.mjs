/*
 * Makes the page about errors, which the service serves, of docs/errors.md: each code of a heading is an anchor. The other pages of the
 * documentation are not served, and callers do not have them: of a link to one, only its text remains.
 */
import MarkdownIt from 'markdown-it';

const STYLE = `
:root { color-scheme: light dark; }
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem; font: 1rem/1.55 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 3rem; }
h3 { margin-top: 2rem; padding-top: .75rem; border-top: 1px solid #8886; font-family: ui-monospace, monospace; font-size: 1.05rem; }
h3:target, h3:has(:target) { border-top: 3px solid #d97706; }
code { padding: .1em .3em; border-radius: .25em; background: #8882; font-size: .9em; overflow-wrap: anywhere; }
nav ul { columns: 15rem; padding-left: 1.2rem; }
`;

/** The anchors of a heading: its codes, or as GitHub makes one of other words. */
export function anchorsOf(heading) {
  const parts = heading.split(', ');
  if (parts.every((part) => /^[a-z]+(?:_[a-z]+)*$/.test(part))) return parts;
  const words = heading.toLowerCase().replace(/[^\w -]/g, '');
  return [words.replaceAll(' ', '-')];
}

/** Returns the page as HTML. */
export function errorsPage(markdown) {
  const parser = new MarkdownIt();
  const contents = [];
  parser.core.ruler.push('anchors', ({ tokens, Token }) => {
    tokens.forEach((token, index) => {
      if (token.type !== 'heading_open' || token.tag === 'h1') return;
      const [first, ...others] = anchorsOf(tokens[index + 1].content);
      token.attrSet('id', first);
      const anchors = others.map((id) =>
        Object.assign(new Token('html_inline', '', 0), { content: `<span id="${id}"></span>` }),
      );
      tokens[index + 1].children.unshift(...anchors);
      if (token.tag === 'h3') contents.push([first, tokens[index + 1].content]);
    });
    for (const { children } of tokens) if (children) replaceFileLinks(children);
  });
  const body = parser.render(markdown);
  const links = contents.map(([id, title]) => `<li><a href="#${id}">${parser.utils.escapeHtml(title)}</a></li>`);
  const nav = `<nav><ul>\n${links.join('\n')}\n</ul></nav>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Errors of Channel Transcripts</title>
<style>${STYLE}</style>
<a href="../docs">API</a>
${body.replace('<h2', `${nav}\n<h2`)}</html>
`;
}

/** Replaces `[text](page.md#section)` by `text`. */
function replaceFileLinks(children) {
  let inFileLink = false;
  for (const token of children) {
    if (token.type === 'link_open') inFileLink = /^[\w-]+\.md(?:#|$)/.test(token.attrGet('href'));
    if (inFileLink && token.type.startsWith('link_'))
      Object.assign(token, { type: 'text', tag: '', content: '', nesting: 0, attrs: null });
  }
}
