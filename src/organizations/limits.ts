export const NAME_LENGTH_MAX = 100;
/** Control characters, lone surrogates and line separators, which a text that is displayed must not have. */
const CONTROL_CHARACTER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Of what an identity provider calls an organization. */
export const EXTERNAL_ID_LENGTH_MAX = 255;

/**
 * Brings a text that is stored and compared into the one form that it has wherever it comes from: without spaces around it, in NFC.
 *
 * @returns undefined unless it has 1 to `lengthMax` characters then, none of them a control character
 */
export function normalizedText(text: string, lengthMax: number): string | undefined {
  const normalized = text.trim().normalize('NFC');
  const { length } = Array.from(normalized);
  return length >= 1 && length <= lengthMax && !CONTROL_CHARACTER.test(normalized) ? normalized : undefined;
}

/** The largest value of the database column. */
export const MONTHLY_LIMIT_MAX = 2_147_483_647;
export const KEY_LIFETIME_DAYS_MAX = 36_500;
/** How long a rotated key can stay valid. */
export const GRACE_HOURS_MAX = 24 * 365;
export const GRACE_HOURS_DEFAULT = 24;
