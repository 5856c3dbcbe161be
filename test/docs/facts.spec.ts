import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ERROR_CODES, ERRORS } from '../../src/domain/error-codes.js';
import { VIDEO_FAILURES } from '../../src/domain/transcript.js';
import { WEBHOOK_EVENTS } from '../../src/webhooks/webhook.js';
import { PROJECT } from './pages.js';

const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
/** The text of a section of a page, to the next heading. */
const section = (page: string, heading: string): string =>
  read(page).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';

interface Schema {
  properties: Record<string, unknown>;
}
const { schemas } = (
  JSON.parse(read('tools/openapi/openapi.json')) as { components: { schemas: Record<string, Schema> } }
).components;

describe('docs/api.md', () => {
  const table = section('docs/api.md', 'Response')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .join('\n');

  it.each([
    'ChannelTranscripts',
    'VideoTranscript',
    'VideoMetadata',
    'VideoError',
    'Summary',
    'Segment',
    'CaptionTrack',
  ])('describes every field of %s in its table', (name) => {
    const fields = Object.keys(schemas[name]?.properties ?? {});
    expect(fields.length).toBeGreaterThan(1);
    expect(fields.filter((field) => !new RegExp(`\\b${field}\\b`).test(table))).toEqual([]);
  });
});

describe('docs/webhooks.md', () => {
  it('lists the events that a webhook can be created with, and no others', () => {
    const [list = ''] = /^- [^]*?\n\n/m.exec(section('docs/webhooks.md', 'Events')) ?? [];
    const names = [...list.matchAll(/`([a-z]+\.[a-z]+)`/g)].map(([, name]) => name);
    expect(names).toEqual(WEBHOOK_EVENTS);
  });
});

describe('an error code', () => {
  /** The text after the heading that names a code. */
  const sectionOf = (code: string): string | undefined => {
    const sections = read('docs/errors.md')
      .split('\n### ')
      .map((part) => part.split('\n\n'));
    return sections.find(([heading = '']) => heading.split(', ').includes(code))?.[1];
  };

  it.each(ERROR_CODES)('%s has a section in docs/errors.md', (code) => {
    expect(sectionOf(code)).toBeDefined();
  });

  it.each(ERROR_CODES.filter((code) => !(code in VIDEO_FAILURES) || ERRORS[code].status >= 500))(
    '%s begins its section in docs/errors.md with its status, and whether it is retryable',
    (code) => {
      const [, status, not] = /^(\d+)[^.;]*?\b(not )?retryable/.exec(sectionOf(code) ?? '') ?? [];
      expect([Number(status), not === undefined]).toEqual([ERRORS[code].status, ERRORS[code].retryable]);
    },
  );

  it.each(ERROR_CODES)(
    '%s is an example of an operation in tools/openapi/openapi.json, by @ApiErrors of what throws it',
    (code) => {
      expect(read('tools/openapi/openapi.json').includes(`"code": "${code}"`)).toBe(true);
    },
  );
});

describe('docs/deployment.md', () => {
  it('has the size of a body that nginx accepts', () => {
    const [, megabytes] = /client_max_body_size (\d+)m;/.exec(read('deploy/nginx.conf')) ?? [];
    expect(section('docs/deployment.md', 'nginx').replaceAll('\n', ' ')).toContain(
      `A body has at most ${megabytes} MB.`,
    );
  });
});
