/** One part that was checked. */
export interface Check {
  area: CheckedArea;
  /** Which one, where there are several: a client, an egress, a list. */
  subject: string;
  works: boolean;
  /** Null where it was not measured by itself. */
  milliseconds: number | null;
  detail: string;
}

export type CheckedArea =
  | 'channel'
  | 'uploads'
  | 'page shape'
  | 'field mask'
  | 'visitor id'
  | 'feed'
  | 'videos'
  | 'client'
  | 'po token'
  | 'egress';

/** A video as it was read: `ok`, or the code of its failure. */
export interface CheckedVideo {
  videoId: string;
  kind: string | null;
  title: string | null;
  outcome: string;
  /** Lines by language; empty unless `ok`. */
  lines: Readonly<Record<string, number>>;
}

/** What the doctor found. It contains no address, key or token. */
export interface DoctorReport {
  /** Whether the service would serve with this configuration. */
  serves: boolean;
  channel: { id: string; name: string; handle: string | null } | null;
  checks: Check[];
  videos: CheckedVideo[];
  /** What to set or do, most important first. */
  advice: string[];
}

/** The report as lines for a terminal. */
export function linesOf({ serves, checks, videos, advice }: DoctorReport): string[] {
  const checkLines = checks.map(({ area, subject, works, milliseconds, detail }) => {
    const time = milliseconds === null ? '' : `${milliseconds} ms`;
    return `${works ? 'ok    ' : 'FAILED'}  ${area.padEnd(10)}  ${subject.padEnd(12)}  ${time.padStart(8)}  ${detail}`;
  });
  const videoLines = videos.map(({ videoId, kind, title, outcome, lines }) => {
    const languages = Object.entries(lines).map(([languageCode, count]) => `${languageCode}: ${count} lines`);
    const result = outcome === 'ok' ? `ok (${languages.join(', ')})` : outcome;
    return `video   ${videoId}  ${(kind ?? 'unknown').padEnd(8)}  ${result}  ${(title ?? '(no title)').slice(0, 60)}`;
  });
  return [
    ...checkLines,
    ...videoLines,
    ...advice.map((each) => `set     ${each}`),
    serves ? 'The service would serve.' : 'The service would not serve.',
  ];
}
