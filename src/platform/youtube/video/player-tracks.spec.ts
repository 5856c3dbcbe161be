import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type PlayerTrack, selectTracks, type TrackDefaults } from './player-tracks.js';

/** `en` is a manual track, `a.en` a generated one. */
function track(id: string): PlayerTrack {
  const generated = id.startsWith('a.');
  const languageCode = generated ? id.slice(2) : id;
  return { baseUrl: `https://www.youtube.com/${id}`, needsToken: false, track: { languageCode, name: id, generated } };
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
    ['the exact code before a variant', ['en-GB', 'a.en'], ['en'], ['a.en']],
    ['a manual variant before a generated one', ['a.en-US', 'en-GB'], ['en'], ['en-GB']],
    ['no language by its variant', ['en'], ['en-GB'], []],
    ['no language whose code merely begins the same', ['fil', 'es'], ['fi', 'e'], []],
    ['a code in any case', ['zh-Hans'], ['ZH-hans'], ['zh-Hans']],
    ['no track twice', ['en-GB'], ['en', 'en-GB', 'en'], ['en-GB']],
    ['none when none fits', ['ar', 'a.ar', 'de'], ['fr'], []],
  ])('it is %s', (_, ids, languages, expected) => {
    expect(choose(ids, languages)).toEqual(expected);
  });

  it('never chooses a language code twice, nor a generated track beside a manual one of its code', () => {
    const code = fc.constantFrom('en', 'en-GB', 'en-US', 'de', 'de-AT', 'fr', 'zh-Hans', 'zh-Hant', 'zh');
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
