import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { temporaryFolder } from '../../../test/process/program.js';
import { anyText } from '../../../test/texts/any-text.js';
import { archiveFileName, findFiles, folderName } from './file-names.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const nameOf = (title: string | null, publishedAt: string | null = null, videoId = 'hl-regatta_'): string =>
  archiveFileName({ videoId, title, publishedAt }, 'markdown');

describe('the name of a file', () => {
  it('has the date when it is known, the title and the ID', () => {
    expect(nameOf('Regatta: day 1/2', '2026-05-21T11:22:05Z')).toBe('2026-05-21 Regatta day 1 2 hl-regatta_.md');
    expect(nameOf('港の灯台')).toBe('港の灯台 hl-regatta_.md');
    for (const title of [null, ' ??? ', ' - ', '. .']) expect(nameOf(title)).toBe('video hl-regatta_.md');
    expect(nameOf(null, '2026-05-21T11:22:05Z')).toBe('2026-05-21 hl-regatta_.md');
  });

  it('is neither an option of a command nor hidden', () => {
    expect(nameOf('-rf --help')).toBe('rf --help hl-regatta_.md');
    expect(nameOf('? - .NET in 100 seconds')).toBe('NET in 100 seconds hl-regatta_.md');
    expect(nameOf('.NET', '2026-05-21T11:22:05Z')).toBe('2026-05-21 .NET hl-regatta_.md');
  });

  it('is within the limits of common file systems, and can be linked from a note, for any title and ID', async () => {
    const ids = fc.string({ unit: fc.constantFrom(...'aZ0-_'), minLength: 11, maxLength: 11 });
    await fc.assert(
      fc.asyncProperty(anyText({ maxLength: 300 }), ids, async (title, videoId) => {
        const name = nameOf(title, null, videoId);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        expect(name).toMatch(/^(?![-. ])[^<>:"/\\|?*[\]#^\p{Cc}]* [\w-]{11}\.md$/u);
        const path = join(folder.path, 'any', name);
        mkdirSync(join(folder.path, 'any'), { recursive: true });
        writeFileSync(path, '');
        expect((await findFiles(join(folder.path, 'any'), 'markdown')).get(videoId)).toBe(path);
        rmSync(path);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the files of a directory', () => {
  it('are found by the IDs of their videos, under old names and in folders, but not in hidden ones', async () => {
    const out = join(folder.path, 'vault.d');
    const names = {
      aaaaaaaaaaa: '2026-05-21 As before [aaaaaaaaaaa].md',
      bbbbbbbbbbb: 'read/later/Moved bbbbbbbbbbb.md',
      '-cccccccccc': '-cccccccccc.md',
      ddddddddddd: 'A link ddddddddddd.md',
    };
    for (const path of ['read/later', '.trash', 'a ggggggggggg.md']) mkdirSync(join(out, path), { recursive: true });
    const { ddddddddddd: link, ...files } = names;
    const others = ['.trash/Deleted eeeeeeeeeee.md', 'Other format fffffffffff.json', 'Notes on something.md'];
    for (const name of [...Object.values(files), ...others]) writeFileSync(join(out, name), '');
    symlinkSync(join(out, files.aaaaaaaaaaa), join(out, link));
    symlinkSync(join(out, 'nothing'), join(out, 'To nothing hhhhhhhhhhh.md'));
    const found = await findFiles(out, 'markdown');
    const paths = Object.entries(names).map(([videoId, name]) => [videoId, join(out, name)]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(paths));
    expect(await findFiles(join(folder.path, 'none'), 'markdown')).toEqual(new Map());
  });
});

describe('the folder of a channel', () => {
  it('is named as the channel, whatever its case, and never leads elsewhere', () => {
    const id = 'UC1234567890123456789012';
    expect(folderName('https://www.youtube.com/@Tidewater/videos')).toBe(folderName('tidewater'));
    expect(folderName('@tidewater')).toBe('@tidewater');
    expect(folderName(`https://www.youtube.com/channel/${id}`)).toBe(id);
    expect(folderName('https://www.youtube.com/c/..')).toBe('custom-..');
    expect(folderName('https://www.youtube.com/user/x')).toBe('user-x');
    fc.assert(fc.property(anyText(), (text) => expect(folderName(text)).not.toMatch(/^\.|[/\\\p{Cc}]/u)));
  });
});
