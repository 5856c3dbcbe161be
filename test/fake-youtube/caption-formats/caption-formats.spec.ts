import { describe, expect, it } from '@jest/globals';
import { HARBOUR_LIGHT } from '../catalogue/harbour-light.js';
import { type Cue, textOf, type Track } from '../catalogue/model.js';
import { subtitled } from '../catalogue/speech.js';
import { json3 } from './json3.js';
import { legacyXml } from './legacy-xml.js';
import { srv3 } from './srv3.js';

interface Spoken {
  startMs: number;
  text: string;
}

const TRACKS: [name: string, track: Track][] = HARBOUR_LIGHT.uploads().flatMap(({ id, tracks }) =>
  tracks.map((track): [string, Track] => [`${id} ${track.generated ? 'generated ' : ''}${track.languageCode}`, track]),
);

describe('the formats of a track', () => {
  it.each(TRACKS)('contain the same text at the same times: %s', (_, track) => {
    const said = track
      .cues()
      .flatMap((cue) => (textOf(cue) === '' ? [] : [{ startMs: cue.startMs, text: textOf(cue) }]));
    expect(asLines(readLegacy(legacyXml(track)))).toBe(asLines(said));
    expect(asLines(readJson3(json3(track)))).toBe(asLines(said));
    expect(asLines(readSrv3(srv3(track)))).toBe(asLines(said));
  });
});

describe('legacy XML', () => {
  it('escapes text twice and markup once, and retains an empty line', () => {
    const xml = legacyXml(trackOf(subtitled([['it’s <b>, R&B, ', { text: "isn't it?", italic: true }], '']), {}));
    expect(xml).toContain('>it’s &amp;lt;b&amp;gt;, R&amp;amp;B, &lt;i>isn&amp;#39;t it?&lt;/i></text>');
    expect(xml).toMatch(/<text start="[0-9.]+" dur="1.2"><\/text><\/transcript>$/);
  });

  it('omits an unknown duration', () => {
    const cues = [{ startMs: 1_540, durationMs: null, runs: [{ text: 'a', colour: '#FFFF00' }] }];
    expect(legacyXml(trackOf(cues, {}))).toContain('<text start="1.54">&lt;font color="#FFFF00">a&lt;/font></text>');
  });
});

describe('json3', () => {
  it('rolls up recognised speech: a window, then words, then a line break in an event of its own', () => {
    const track = trackOf(subtitled(['one two', 'three']), { generated: true });
    const { events } = JSON.parse(json3(track)) as { events: object[] };
    expect(events).toMatchObject([
      { tStartMs: 0, id: 1 },
      { wWinId: 1, segs: [{ utf8: 'one' }, { utf8: ' two', tOffsetMs: 400 }] },
      { wWinId: 1, aAppend: 1, segs: [{ utf8: '\n' }] },
      { wWinId: 1, segs: [{ utf8: 'three' }] },
      { wWinId: 1, aAppend: 1, segs: [{ utf8: '\n' }] },
    ]);
    expect(events[0]).not.toHaveProperty('segs');
  });

  it('writes times as text for tracks with that option', () => {
    const track = trackOf([{ startMs: 240, durationMs: 900, runs: [{ text: 'a' }] }], { timesAsStrings: true });
    expect(JSON.parse(json3(track))).toMatchObject({ events: [{ tStartMs: '240', dDurationMs: '900' }] });
  });
});

/** One text to compare: Jest takes seconds to compare ten thousand objects. */
function asLines(spoken: readonly Spoken[]): string {
  return spoken.map((cue) => JSON.stringify([cue.startMs, cue.text])).join('\n');
}

function trackOf(cues: readonly Cue[], more: Partial<Track>): Track {
  return { languageCode: 'en', languageName: 'English', ...more, cues: () => cues };
}

function readLegacy(xml: string): Spoken[] {
  return [...xml.matchAll(/<text start="([0-9.]+)"[^>]*>([^<]*)<\/text>/g)].flatMap(([, start, escaped = '']) => {
    const text = unescaped(unescaped(escaped).replaceAll(/<\/?(?:i|font)\b[^>]*>/g, ''));
    return text === '' ? [] : [{ startMs: Math.round(Number(start) * 1_000), text }];
  });
}

function readJson3(json: string): Spoken[] {
  const { events } = JSON.parse(json) as {
    events: { tStartMs: number | string; aAppend?: 1; segs?: { utf8: string }[] }[];
  };
  return events.flatMap(({ tStartMs, aAppend, segs }) =>
    segs && !aAppend ? [{ startMs: Number(tStartMs), text: segs.map(({ utf8 }) => utf8).join('') }] : [],
  );
}

function readSrv3(xml: string): Spoken[] {
  return [...xml.matchAll(/<p t="([0-9]+)"([^>]*)>(.*?)<\/p>/gs)].flatMap(
    ([, start, attributes = '', content = '']) => {
      const text = unescaped(content.replaceAll(/<\/?s\b[^>]*>/g, ''));
      return text === '' || attributes.includes('a="1"') ? [] : [{ startMs: Number(start), text }];
    },
  );
}

function unescaped(text: string): string {
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => entities[name] ?? '');
}
