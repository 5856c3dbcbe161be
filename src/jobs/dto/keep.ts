import { z } from 'zod';
import { Field } from '../../http/routes/field.js';

/** The field `keep`. */
export const Keep = (): PropertyDecorator =>
  Field.boolean({
    impliedDefault: false,
    description:
      'Whether the transcripts are kept in the library of the organization until they are deleted from it: what is kept is ' +
      'searched, and never fetched or charged again.',
    storedSince: 2,
    brief: 'Whether the transcripts are kept in the library.',
    hint: 'Keeps the texts in the library, for `search_library`.',
  });

/** Whether a job or a subscription keeps its texts at the moment. */
const KEEP_STATES = ['off', 'on', 'full'] as const;
export type KeepState = (typeof KEEP_STATES)[number];

export const keepState = z
  .enum(KEEP_STATES)
  .describe(
    'Whether the transcripts are kept in the library. `full`: the library has reached its limit, so that new ones are delivered and ' +
      'not kept until some are deleted from it.',
  );
