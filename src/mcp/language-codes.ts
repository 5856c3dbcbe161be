import { z } from 'zod';

const LANGUAGES_MAX = 20;

/** The languages of a call, in lower case and each once, as they are part of the keys of cached transcripts. */
export const languageCodes = z
  .array(z.string().regex(/^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/, 'must be language codes such as en or pt-BR'))
  .min(1)
  .max(LANGUAGES_MAX)
  .transform((codes) => [...new Set(codes.map((code) => code.toLowerCase()))]);
