import { z } from 'zod';

// The kinds of fields that many responses have.

/** A whole number from 0 on. */
export const count = (description: string) => z.int().min(0).describe(description);

/** Seconds from 0 on, which is stated and not checked: what was stored once is read as it is. */
export const seconds = (description: string) => z.number().meta({ minimum: 0, description });

export const textOrNull = (description: string) => z.string().nullable().describe(description);

/** A time as a text (ISO 8601). */
export const dateTime = (description: string) => z.string().meta({ format: 'date-time', description });

export const dateTimeOrNull = (description: string) => dateTime(description).nullable();
