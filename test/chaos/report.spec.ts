import { describe, expect, it } from '@jest/globals';
import { withReports, type TitledReport } from './report.js';

const BEGIN = '<!-- What follows is written by `npm run chaos`. -->';
const END = '<!-- What comes before is written by `npm run chaos`. -->';

const TITLES = ['One', 'Two', 'Three'];

const report = (title: string, text: string): TitledReport => ({ title, text, columns: [], rows: [], checks: [] });
const titles = (page: string): string[] => page.split('\n').filter((line) => line.startsWith('### '));

describe('the page with the reports', () => {
  const page = `# Reliability\n\n${BEGIN}\n\nRun 1.\n\n### One\n\nold\n\n### Two\n\nold\n\n${END}\n\nThe end.\n`;

  it('keeps the sections of parts that were not run, and names the run of the others', () => {
    const changed = withReports(page, [report('Two', 'New.'), report('Three', 'New.')], TITLES, 'Run 2.');
    expect(titles(changed)).toEqual(['### One', '### Two', '### Three']);
    expect(changed).toContain('Run 1.\n\n### One\n\nold\n');
    expect(changed).toContain('### Two\n\nNew. In a run of its own: Run 2.\n');
    expect(changed.endsWith(`${END}\n\nThe end.\n`)).toBe(true);
  });

  it('removes the section of a title that no part has any more, in a run of some parts and of all', () => {
    const renamed = page.replace('### One', '### Once One');
    const some = withReports(renamed, [report('One', 'New.')], TITLES, 'Run 2.');
    expect(titles(some)).toEqual(['### One', '### Two']);
    expect(some).toContain('Run 1.\n\n### One\n\nNew. In a run of its own: Run 2.\n');
    const all = TITLES.map((title) => report(title, 'New.'));
    const whole = withReports(renamed, all, TITLES, 'Run 2.');
    expect(titles(whole)).toEqual(['### One', '### Two', '### Three']);
    expect(whole).toContain(`${BEGIN}\n\nRun 2.\n\n### One\n\nNew.\n`);
    expect(whole).not.toContain('old');
  });

  it('puts a section into the order of the parts', () => {
    const changed = withReports(page, [report('Zero', 'New.')], ['Zero', ...TITLES], 'Run 2.');
    expect(titles(changed)).toEqual(['### Zero', '### One', '### Two']);
  });

  it('names the run once when every part was run', () => {
    const changed = withReports(page, [report('One', 'New.'), report('Two', 'New.')], TITLES, 'Run 2.');
    expect(changed).toContain(`${BEGIN}\n\nRun 2.\n\n### One\n\nNew.\n`);
    expect(changed).not.toContain('Run 1.');
    expect(changed).not.toContain('of its own');
  });
});
