import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { anchorsOf, linksOf, PAGES, PROJECT } from './pages.js';

interface Link {
  link: string;
  /** The path in the project. */
  target: string;
  anchor: string | undefined;
}

/** The links of a page within the project. */
const linksWithin = (page: string): Link[] =>
  linksOf(page)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', anchor] = link.split('#');
      return { link, target: path ? join(dirname(page), path) : page, anchor };
    });

describe('the links of a page', () => {
  it.each(PAGES)('(%s) lead to files and headings that exist', (page) => {
    const dead = linksWithin(page).filter(
      ({ target, anchor }) =>
        !existsSync(join(PROJECT, target)) || (anchor !== undefined && !anchorsOf(target).has(anchor)),
    );
    expect(dead.map(({ link }) => link)).toEqual([]);
  });
});

describe('docs/README.md', () => {
  it('lists every page of docs and of the clients once', () => {
    const listed = linksWithin('docs/README.md').map(({ target }) => target);
    const pages = PAGES.filter((page) => /^(?:docs|clients)\/(?!README|decisions\/\d)/.test(page));
    expect(listed.filter((target) => !target.endsWith('.svg')).sort()).toEqual(expect.arrayContaining(pages.sort()));
    expect(new Set(listed).size).toBe(listed.length);
  });
});
