import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsArray, IsIn, Matches, Min } from 'class-validator';
import {
  areLanguages,
  LANGUAGE_MATCHES,
  LANGUAGES_MAX,
  normalizeLanguages,
  type LanguageMatch,
} from '../../domain/language-codes.js';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { INCLUDABLE, VIDEO_KINDS, type Includable, type VideoKind } from '../../domain/transcript.js';
import { VIDEO_ID } from '../../domain/video-reference.js';
import { digitsOf, Optional, OptionalInteger } from '../../http/routes/validation.js';

export const LIMIT_DEFAULT = 25;
export const CHUNK_SECONDS_MIN = 15;
export const CHUNK_SECONDS_MAX = 600;

const ORIGINAL_HINT = 'For the original language of the video use *, as the last or the only one.';
export const LANGUAGES_INVALID = `languages must be up to ${LANGUAGES_MAX} language codes separated by commas, such as en,de, given once. ${ORIGINAL_HINT}`;
const LANGUAGE_LIST_INVALID = `languages must be a list of 1 to ${LANGUAGES_MAX} language codes, such as ["en", "de"], or these codes separated by commas. ${ORIGINAL_HINT}`;
export const SINCE_INVALID = 'since must be the ID of a video (11 characters), given once.';

const Limit = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'The maximum number of videos to return, from the start of the list: the newest uploads of a channel, or the first videos of a playlist. ' +
        `Values above ${VIDEOS_PER_CALL_MAX} are treated as ${VIDEOS_PER_CALL_MAX}.`,
      type: 'integer',
      minimum: 1,
      default: LIMIT_DEFAULT,
    }),
    Transform(({ value }: { value: unknown }) => Math.min(digitsOf(value), VIDEOS_PER_CALL_MAX)),
    Min(1, {
      message: `limit must be an integer of at least 1 in decimal digits, given once. Values above ${VIDEOS_PER_CALL_MAX} are treated as ${VIDEOS_PER_CALL_MAX}.`,
    }),
  );

/** The query parameter `languages`. */
const Languages = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        `Up to ${LANGUAGES_MAX} language codes in order of preference, separated by commas, such as \`en,de\`. The response has ` +
        'a transcript for each of them that the video has. A code matches exactly or, failing that, another code of the same ' +
        'language (`he` matches `iw`) or, failing that, by prefix: `en` matches `en-GB`. `*`, as the last, is the original language ' +
        'when none before it is there. By default the transcript is in the ' +
        'original language of the video. Transcripts are never machine-translated.',
      type: 'string',
    }),
    Optional(),
    Transform(({ value }: { value: unknown }) => parseLanguages(value)),
    IsArray({ message: LANGUAGES_INVALID }),
  );

/** The field `languages` of a body. */
const LanguageList = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'Language codes in order of preference, as in `languages` of the other operations: a list, or one text separated by ' +
        'commas. By default each transcript is in the original language of the video.',
      oneOf: [{ type: 'array', items: { type: 'string' }, minItems: 1, maxItems: LANGUAGES_MAX }, { type: 'string' }],
    }),
    Optional(),
    Transform(({ value }: { value: unknown }) => parseLanguages(joined(value))),
    IsArray({ message: LANGUAGE_LIST_INVALID }),
  );

const Match = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'Whether `languages` returns each language that the video has (`all`, the default), or only the first of them.',
      enum: LANGUAGE_MATCHES,
    }),
    Optional(),
    IsIn(LANGUAGE_MATCHES, { message: `match must be ${LANGUAGE_MATCHES.join(' or ')}, given once.` }),
  );

/**
 * A parameter that is a list of some words.
 *
 * @param inBody whether it may also be a list of JSON
 */
const Words = (
  name: string,
  words: readonly string[],
  { description, inBody = false }: { description: string; inBody?: boolean },
): PropertyDecorator => {
  const list = { type: 'array' as const, items: { type: 'string' as const, enum: [...words] }, minItems: 1 };
  return applyDecorators(
    inBody
      ? ApiPropertyOptional({ description, oneOf: [list, { type: 'string' }] })
      : ApiPropertyOptional({ description, type: 'string' }),
    Optional(),
    Transform(({ value }: { value: unknown }) => parseWords(inBody ? joined(value) : value, words)),
    IsArray({ message: `${name} must be one or more of ${words.join(', ')}, separated by commas, given once.` }),
  );
};

const Include = ({ inBody = false } = {}): PropertyDecorator =>
  Words('include', INCLUDABLE, {
    description:
      'What to add to `metadata`, separated by commas: `description`, `chapters` (from the time stamps of the description) and ' +
      '`tags`. It costs no further request.',
    inBody,
  });

/** The parameter `chunkSeconds`: a number in a body, digits in a query. */
const ChunkSeconds = ({ inBody = false } = {}): PropertyDecorator =>
  applyDecorators(
    OptionalInteger([CHUNK_SECONDS_MIN, CHUNK_SECONDS_MAX], {
      description:
        'Joins the segments to chunks of about this many seconds, such as 60, which end with a sentence where there is one, in every ' +
        'format. By default segments are as in the captions.',
    }),
    Transform(({ value }: { value: unknown }) => (inBody ? value : digitsOf(value))),
  );

const KINDS_OF_CALL =
  `The kinds of videos to return, separated by commas: ${VIDEO_KINDS.join(', ')}; by default all. \`limit\` counts what remains, ` +
  'for which up to 500 videos of the list are read. For `video` and `short`, one whose kind YouTube does not state is kept.';

/** The parameter `kinds`. */
export const Kinds = ({ description = KINDS_OF_CALL, inBody = false } = {}): PropertyDecorator =>
  Words('kinds', VIDEO_KINDS, { description, inBody });

const Since = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'The ID of a video, such as the newest one that you already have: only the uploads that are newer than it are ' +
        'returned. When it is not among the newest `limit` uploads, all of those are returned, and `sinceFound` is false. What ' +
        'was live, announced or without captions at an earlier call and is listed below it does not come back.',
      type: 'string',
      pattern: VIDEO_ID.source,
    }),
    Optional(),
    Matches(VIDEO_ID, { message: SINCE_INVALID }),
  );

// Swagger's mapped types (`PickType` and others) look for class-validator and class-transformer by a `require` of their own,
// which finds another copy than the bundle's, or none in the image: the class would lose its rules.

/** The query parameters of all operations that return transcripts. The validation pipe refuses all others. */
export class TextQueryDto {
  @Languages()
  languages?: string[];

  @Match()
  match?: LanguageMatch;

  @Include()
  include?: Includable[];

  @ChunkSeconds()
  chunkSeconds?: number;
}

/** The fields of all bodies that ask for transcripts. */
export class TextBodyDto {
  @LanguageList()
  languages?: string[];

  @Match()
  match?: LanguageMatch;

  @Include({ inBody: true })
  include?: Includable[];

  @ChunkSeconds({ inBody: true })
  chunkSeconds?: number;
}

/** The query parameters of a playlist, whose order is not by date. */
export class PlaylistQueryDto extends TextQueryDto {
  @Limit()
  limit: number = LIMIT_DEFAULT;

  @Kinds()
  kinds?: VideoKind[];
}

/** The query parameters of the transcripts of a channel. */
export class TranscriptsQueryDto extends PlaylistQueryDto {
  @Since()
  since?: string;
}

/** The query parameters of a list of uploads without transcripts. */
export class UploadsQueryDto {
  @Limit()
  limit: number = LIMIT_DEFAULT;

  @Kinds()
  kinds?: VideoKind[];

  @Since()
  since?: string;
}

/**
 * Parses a comma-separated list of language codes: in the given order, without duplicates, in lower case.
 *
 * @returns null, which fails validation, for any other value
 */
export function parseLanguages(value: unknown): string[] | null {
  if (typeof value !== 'string') return null;
  const languages = value.split(',');
  if (languages.length > LANGUAGES_MAX || !areLanguages(languages)) return null;
  return normalizeLanguages(languages);
}

/** Parses a comma-separated list of some words. @returns null, which fails validation, for any other value */
export function parseWords<Word extends string>(value: unknown, words: readonly Word[]): Word[] | null {
  const parts = typeof value === 'string' ? value.split(',') : [];
  const isValid = parts.length > 0 && parts.every((part) => words.some((word) => word === part));
  return isValid ? words.filter((word) => parts.includes(word)) : null;
}

/** The form of a query for a list of texts; any other value as it is. */
function joined(value: unknown): unknown {
  const isList = Array.isArray(value) && value.every((text) => typeof text === 'string' && !text.includes(','));
  return isList ? value.join(',') : value;
}
