import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsArray, Matches, Min } from 'class-validator';
import { LANGUAGE_CODE, LANGUAGES_MAX, normalizeLanguages } from '../../domain/language-codes.js';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { VIDEO_ID } from '../../domain/video-reference.js';
import { digitsOf, Optional } from '../../http/validation.js';

export const LIMIT_DEFAULT = 25;

export const LANGUAGES_INVALID = `languages must be up to ${LANGUAGES_MAX} language codes separated by commas, such as en,de, given once.`;
const LANGUAGE_LIST_INVALID = `languages must be a list of 1 to ${LANGUAGES_MAX} language codes, such as ["en", "de"], or these codes separated by commas.`;
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
      example: 5,
    }),
    Transform(({ value }: { value: unknown }) => Math.min(digitsOf(value), VIDEOS_PER_CALL_MAX)),
    Min(1, {
      message: `limit must be an integer of at least 1 in decimal digits, given once. Values above ${VIDEOS_PER_CALL_MAX} are treated as ${VIDEOS_PER_CALL_MAX}.`,
    }),
  );

/** The query parameter `languages`. */
export const Languages = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        `Up to ${LANGUAGES_MAX} language codes in order of preference, separated by commas, such as \`en,de\`. The response has ` +
        'a transcript for each of them that the video has. A code matches exactly or, failing that, another code of the same ' +
        'language (`he` matches `iw`) or, failing that, by prefix: `en` matches `en-GB`. By default the transcript is in the ' +
        'original language of the video. Transcripts are never machine-translated.',
      type: 'string',
    }),
    Optional(),
    Transform(({ value }: { value: unknown }) => parseLanguages(value)),
    IsArray({ message: LANGUAGES_INVALID }),
  );

/** The field `languages` of a body. */
export const LanguageList = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'Language codes in order of preference, as in `languages` of the other operations: a list, or one text separated by ' +
        'commas. By default each transcript is in the original language of the video.',
      oneOf: [{ type: 'array', items: { type: 'string' }, minItems: 1, maxItems: LANGUAGES_MAX }, { type: 'string' }],
      example: ['en', 'de'],
    }),
    Optional(),
    Transform(({ value }: { value: unknown }) => parseLanguageList(value)),
    IsArray({ message: LANGUAGE_LIST_INVALID }),
  );

const Since = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      description:
        'The ID of a video, such as the newest one that you already have: only the uploads that are newer than it are ' +
        'returned. When it is not among the newest `limit` uploads, all of those are returned.',
      type: 'string',
      pattern: VIDEO_ID.source,
    }),
    Optional(),
    Matches(VIDEO_ID, { message: SINCE_INVALID }),
  );

// Swagger's mapped types (`PickType` and others) look for class-validator and class-transformer by a `require` of their own,
// which finds another copy than the bundle's, or none in the image: the class would lose its rules.

/** The query parameters of a playlist, whose order is not by date. The validation pipe refuses all others. */
export class PlaylistQueryDto {
  @Limit()
  limit: number = LIMIT_DEFAULT;

  @Languages()
  languages?: string[];
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
  if (languages.length > LANGUAGES_MAX || !languages.every((language) => LANGUAGE_CODE.test(language))) return null;
  return normalizeLanguages(languages);
}

/** Parses the languages of a body: a list of codes, or the comma-separated form of a query. @returns null when invalid */
function parseLanguageList(value: unknown): string[] | null {
  const isList = Array.isArray(value) && value.every((code) => typeof code === 'string' && !code.includes(','));
  return parseLanguages(isList ? value.join(',') : value);
}
