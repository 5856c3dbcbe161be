import { z } from 'zod';
import { LANGUAGE_CODE, LANGUAGES_MAX, normalizeLanguages } from '../domain/language-codes.js';

/** The languages of a call. */
export const languageCodes = z
  .array(z.string().regex(LANGUAGE_CODE, 'must be language codes such as en or pt-BR'))
  .min(1)
  .max(LANGUAGES_MAX)
  .transform(normalizeLanguages);
