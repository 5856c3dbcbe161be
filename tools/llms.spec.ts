import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { FILE, generated } from './llms.js';

it('docs/llms.txt has the pages as npm run llms writes them, in the form of llmstxt.org', async () => {
  const text = await readFile(FILE, 'utf8');
  expect(text).toBe(await generated());
  const [title, summary, ...others] = text.trim().split('\n\n');
  expect(title).toMatch(/^# .+$/);
  expect(summary).toMatch(/^> .+$/);
  const sections = others.slice(1);
  expect(sections.length).toBeGreaterThan(1);
  for (const [index, section] of sections.entries())
    expect(section).toMatch(index % 2 === 0 ? /^## .+$/ : /^(- \[[^\]]+\]\([^)]+\).*\n?)+$/);
});
