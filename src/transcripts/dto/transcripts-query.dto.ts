import { z } from 'zod';
import {
  areLanguages,
  LANGUAGE_MATCHES,
  type LanguageMatch,
  LANGUAGES_MAX,
  normalizeLanguages,
  TRACK_CHOICES,
  type TrackChoice,
} from '../../domain/language-codes.js';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { INCLUDABLE, VIDEO_KINDS, type Includable, type VideoKind } from '../../domain/transcript.js';
import { VIDEO_ID } from '../../domain/references/video-reference.js';
import { Field, field, isTexts, Picked } from '../../http/routes/field.js';

/** Which languages of the videos are returned. */
export class LanguageFields {
  @field(
    {
      schema: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: LANGUAGES_MAX },
      parse: (text) => text.split(','),
      takesText: true,
      normalize: normalizeLanguages,
      fault: (value, form) => {
        if (isTexts(value) && value.length <= LANGUAGES_MAX && areLanguages(value)) return undefined;
        const codes =
          form === 'json'
            ? `a list of 1 to ${LANGUAGES_MAX} language codes, such as ["en", "de"], or these codes separated by commas`
            : `1 to ${LANGUAGES_MAX} language codes separated by commas, such as en,de`;
        return `must be ${codes}. For the original language of the video use *, as the last or the only one`;
      },
    },
    {
      description:
        `Up to ${LANGUAGES_MAX} language codes in order of preference, separated by commas, such as \`en,de\`. The response has ` +
        'a transcript for each of them that the video has. A code matches exactly or, failing that, another code of the same ' +
        'language (`he` matches `iw`) or, failing that, by prefix: `en` matches `en-GB`. `*`, as the last, is the original language ' +
        'when none before it is there. By default the transcript is in the ' +
        'original language of the video. Transcripts are never machine-translated.',
      brief: 'Language codes in order of preference. Empty: the original language of each video.',
      hint: '`en` finds `en-GB` too; `*`, the last, is the original language, the default.',
    },
  )
  languages?: readonly string[];

  @Field.word({
    words: LANGUAGE_MATCHES,
    impliedDefault: 'all',
    description:
      'Whether `languages` returns each language that the video has (`all`, the default), or only the first of them.',
    brief: 'Which of the languages that a video has are taken.',
    hint: '`all`: each that a video has.',
  })
  match: LanguageMatch;

  @Field.word({
    words: TRACK_CHOICES,
    impliedDefault: 'any',
    storedSince: 2,
    description:
      'Which caption tracks are used: `any` (the default: a manual one before a generated one), only `manual` or only `generated` ones. ' +
      'A video without such a track in the languages fails with `language_unavailable`, whose message names what there is.',
    brief: 'Which caption tracks are used.',
    hint: 'Of the captions.',
  })
  tracks: TrackChoice;
}

export class TextFields extends LanguageFields {
  @Field.words({
    words: INCLUDABLE,
    description:
      'What to add to `metadata`, separated by commas: `description`, `chapters` (from the time stamps of the description) and ' +
      '`tags`. It costs no further request.',
    brief: 'What is added to the metadata of each entry.',
    hint: 'Written before each transcript, for free.',
  })
  include?: readonly Includable[];

  @Field.integer({
    min: 15,
    max: 600,
    description:
      'Joins the segments to chunks of about this many seconds, such as 60, which end with a sentence where there is one, and where a ' +
      'chapter begins; those of a video with chapters have `chapter`, its title. In every format. By default segments are as in the captions.',
    brief: 'The length of the chunks in seconds. Null: segments are as in the captions.',
    hint: 'The length of a paragraph; by default about a minute.',
  })
  chunkSeconds?: number;
}

export const Kinds = (description: string): PropertyDecorator =>
  Field.words({
    words: VIDEO_KINDS,
    description,
    brief: 'The kinds of videos. Empty: all.',
    hint: '`["video", "short"]` leaves out live and announced ones.',
  });

const DATE = z.union([z.iso.date(), z.iso.datetime({ offset: true })]);
/** Also as a time in UTC, which has no year beyond 9999. */
const isDate = (value: unknown): value is string =>
  DATE.safeParse(value).success && DATE.safeParse(new Date(value as string).toISOString()).success;

export const As = (): PropertyDecorator =>
  Field.word({
    words: ['documents'],
    description:
      '`documents`, with `Accept: application/x-ndjson`: a line for each piece of about `chunkSeconds` (60 by default), ready for a vector ' +
      'store, and one for each video without a transcript. A piece ends where a chapter begins.',
  });

/** The field `publishedAfter`: a date is its beginning in UTC. */
export const PublishedAfter = (description: string): PropertyDecorator =>
  field(
    {
      schema: { type: 'string' },
      normalize: (value: string) => new Date(value).toISOString(),
      fault: (value, form) => {
        if (isDate(value)) return undefined;
        const offset = form === 'text' ? '2026-09-01T09:30:00%2B02:00' : '2026-09-01T09:30:00+02:00';
        return `must be a date that exists, such as 2026-09-01, or a time with its zone, such as 2026-09-01T07:30:00Z or ${offset}`;
      },
    },
    {
      storedSince: 2,
      description,
      brief: 'Only videos published at this time or later are taken. Null: all.',
      hint: 'A date (UTC), or a time with its zone.',
    },
  );

/** The query parameters of the transcripts of a playlist, whose order is not by date. */
export class PlaylistQueryDto extends TextFields {
  @Field.integer({
    min: 1,
    cap: VIDEOS_PER_CALL_MAX,
    default: 25,
    description:
      'The maximum number of videos to return, from the start of the list: the newest uploads of a channel, or the first videos of a playlist.',
    brief: 'The maximum number of videos.',
  })
  limit: number;

  @Kinds(
    `The kinds of videos to return, separated by commas: ${VIDEO_KINDS.join(', ')}; by default all. \`limit\` counts what remains, ` +
      'for which up to 500 videos of the list are read. For `video` and `short`, one whose kind YouTube does not state is kept.',
  )
  kinds?: readonly VideoKind[];

  @PublishedAfter(
    'Only videos that were published at this time or later: a date, which begins at 0:00 UTC, or a time with its zone. The exact date of a ' +
      'video decides or, where YouTube does not state it, the age that the list shows; a video without either is kept. `limit` counts ' +
      'what remains, for which up to 500 videos of the list are read.',
  )
  publishedAfter?: string;

  @As()
  as?: 'documents';
}

/** The query parameters of a list of the videos of a playlist without transcripts. */
export class PlaylistVideosQueryDto extends Picked(PlaylistQueryDto, 'limit', 'kinds', 'publishedAfter') {}

export const Since = (description: string): PropertyDecorator =>
  Field.text({
    rule: 'the ID of a video (11 characters)',
    pattern: VIDEO_ID,
    description,
    brief: 'Only uploads of the channel newer than this video are taken. Null: all.',
    hint: 'The ID of a video: only the uploads above it.',
  });

/** The query parameters of the transcripts of a channel. */
export class TranscriptsQueryDto extends PlaylistQueryDto {
  @Since(
    'The ID of a video, such as the newest one that you already have: only the uploads that are newer than it are ' +
      'returned. When it is not among the newest `limit` uploads, all of those are returned, and `sinceFound` is false. What ' +
      'was live, announced or without captions at an earlier call and is listed below it does not come back.',
  )
  since?: string;
}

/** The query parameters of a list of uploads without transcripts. */
export class UploadsQueryDto extends Picked(TranscriptsQueryDto, 'limit', 'kinds', 'publishedAfter', 'since') {}
