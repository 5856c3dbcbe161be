import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { canonicalLanguage } from '../../../domain/language-codes.js';
import { type PlayerTrack, selectTracks, type TrackDefaults } from './player-tracks.js';

/** `en` is a manual track, `a.en` a generated one. */
function track(id: string): PlayerTrack {
  const generated = id.startsWith('a.');
  const languageCode = generated ? id.slice(2) : id;
  const caption = { languageCode, name: id, generated };
  const canonicalCode = canonicalLanguage(languageCode);
  return { baseUrl: `https://www.youtube.com/${id}`, needsToken: false, canonicalCode, track: caption };
}

function choose(ids: string[], languages: string[] = [], hints: { audio?: string; byDefault?: number } = {}): string[] {
  const tracks = ids.map(track);
  const defaults: TrackDefaults = {
    defaultTrack: tracks[hints.byDefault ?? -1] ?? null,
    audioLanguage: hints.audio ?? null,
  };
  return selectTracks(tracks, defaults, languages).map((each) => each.track.name);
}

describe('without languages', () => {
  it.each<[string, string[], { audio?: string; byDefault?: number }, string]>([
    ['the manual track of the language that was heard', ['ar', 'de', 'en', 'a.de'], {}, 'de'],
    [
      'the generated track when there is no manual one in that language',
      ['ar', 'en', 'a.de'],
      { byDefault: 1 },
      'a.de',
    ],
    ['the variant of the language that was heard', ['fr', 'en-GB', 'a.en'], {}, 'en-GB'],
    ['the very variant before another', ['pt-PT', 'pt-BR', 'a.pt-BR'], {}, 'pt-BR'],
    ["the platform's default among variants", ['en-US', 'en-GB', 'a.en'], { byDefault: 1 }, 'en-GB'],
    ["the original audio's language before one that was heard in a dub", ['es', 'en', 'a.es'], { audio: 'en' }, 'en'],
    ['the original among several heard languages', ['es', 'ja', 'a.es', 'a.ja'], { audio: 'ja', byDefault: 0 }, 'ja'],
    ["the original audio's language by its other code", ['en', 'a.en', 'a.iw'], { audio: 'he', byDefault: 0 }, 'a.iw'],
    ['the one heard language when the original audio has no track', ['fr', 'a.de'], { audio: 'en' }, 'a.de'],
    ["the platform's default when nothing was heard", ['ar', 'de', 'en'], { byDefault: 2 }, 'en'],
    ["the platform's default when several languages were heard", ['ar', 'a.es', 'a.en'], { byDefault: 2 }, 'a.en'],
    [
      'a manual track of the default language when the default is generated',
      ['ar', 'en', 'a.en', 'a.es'],
      { byDefault: 2 },
      'en',
    ],
    ['the first manual track when nothing tells', ['a.fr', 'a.es', 'de', 'en'], {}, 'de'],
    ['a generated track when there is no other', ['a.fr'], {}, 'a.fr'],
  ])('it is %s', (_, ids, hints, expected) => {
    expect(choose(ids, [], hints)).toEqual([expected]);
  });
});

describe('with languages', () => {
  it.each<[string, string[], string[], string[]]>([
    ['in the order asked for', ['ar', 'de', 'en'], ['en', 'fr', 'ar'], ['en', 'ar']],
    ['a manual track before a generated one', ['a.en', 'en'], ['en'], ['en']],
    ['a generated track when there is no manual one', ['de', 'a.en'], ['en'], ['a.en']],
    ['a variant by its prefix', ['de', 'en-GB'], ['en'], ['en-GB']],
    ['the original for * when none before it is there', ['a.fr', 'en'], ['de', '*'], ['a.fr']],
    ['nothing for * when one before it is there', ['a.fr', 'en'], ['en', '*'], ['en']],
    ['the first of alternatives', ['ar', 'de', 'en'], ['fr|en|ar'], ['en']],
    ['the original after alternatives that are not there', ['a.fr', 'en'], ['de|es|*'], ['a.fr']],
    ['the first of alternatives by a variant and another code', ['iw', 'en-GB'], ['he|en'], ['iw']],
    ['the exact code before a variant', ['en-GB', 'a.en'], ['en'], ['a.en']],
    ['a manual variant before a generated one', ['a.en-US', 'en-GB'], ['en'], ['en-GB']],
    ['no language by its variant', ['en'], ['en-GB'], []],
    ['no language whose code merely begins the same', ['fil', 'es'], ['fi', 'e'], []],
    ['a code in any case', ['zh-Hans'], ['ZH-hans'], ['zh-Hans']],
    ['a language by its other code', ['en', 'a.iw', 'in'], ['he', 'id'], ['a.iw', 'in']],
    ['a language by its older code', ['he', 'fil'], ['iw', 'tl'], ['he', 'fil']],
    ['the exact code before the other code', ['iw', 'a.he'], ['he'], ['a.he']],
    ['the other code before a variant', ['he-IL', 'a.iw'], ['he'], ['a.iw']],
    ['a variant of the other code', ['en', 'iw-IL'], ['he'], ['iw-IL']],
    ['no Norwegian for another', ['no'], ['nb'], []],
    [
      'a malformed code by its letters',
      ['zh-cmn-hans', 'en_US'],
      ['zh-cmn-Hans', 'en_us', 'x'],
      ['zh-cmn-hans', 'en_US'],
    ],
    ['no track twice', ['en-GB'], ['en', 'en-GB', 'en'], ['en-GB']],
    ['none when none fits', ['ar', 'a.ar', 'de'], ['fr'], []],
  ])('it is %s', (_, ids, languages, expected) => {
    expect(choose(ids, languages)).toEqual(expected);
  });

  it('never chooses a language code twice, nor a generated track beside a manual one of its code', () => {
    const code = fc.constantFrom('en', 'en-GB', 'en-US', 'de', 'iw', 'he', 'he-IL', 'x', 'zh-Hans', 'zh-Hant', 'zh');
    const id = fc.tuple(fc.boolean(), code).map(([generated, each]) => `${generated ? 'a.' : ''}${each}`);
    fc.assert(
      fc.property(fc.array(id), fc.array(code), fc.nat(10), fc.option(code), (ids, languages, byDefault, audio) => {
        const tracks = ids.map(track);
        const defaults = { defaultTrack: tracks[byDefault] ?? null, audioLanguage: audio };
        const chosen = selectTracks(tracks, defaults, languages);
        const codes = chosen.map((each) => each.track.languageCode);
        expect(new Set(codes).size).toBe(codes.length);
        expect(chosen.length).toBeLessThanOrEqual(Math.max(1, languages.length));
        for (const { track: each } of chosen) {
          if (each.generated)
            expect(
              tracks.some((other) => other.track.languageCode === each.languageCode && !other.track.generated),
            ).toBe(false);
        }
        if (languages.length === 0 && tracks.length > 0) expect(chosen).toHaveLength(1);
      }),
      { numRuns: 300 },
    );
  });
});

describe('with tracks of one origin', () => {
  it.each<[string, string[], string[], string[]]>([
    ['the generated one beside a manual one', ['en', 'a.en'], ['generated:*'], ['a.en']],
    ['none when the original language has none of that origin', ['de', 'a.en'], ['manual:*'], []],
    ['the manual one of the original language', ['de', 'en-GB', 'a.en'], ['manual:*'], ['en-GB']],
    ['one that is there by prefix, past one of the other origin', ['en', 'a.en-GB'], ['generated:en'], ['a.en-GB']],
    ['the first alternative of that origin', ['de', 'a.en', 'fr'], ['manual:en|fr|de'], ['fr']],
    ['each listed language of that origin', ['de', 'a.en', 'a.fr'], ['generated:de', 'generated:en'], ['a.en']],
  ])('is %s', (_what, tracks, languages, chosen) => {
    expect(choose(tracks, languages)).toEqual(chosen);
  });
});
