import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../../domain/errors.js';
import { StrictValidationPipe } from '../../http/validation.js';
import { TranscriptsQueryDto } from './transcripts-query.dto.js';

const pipe = new StrictValidationPipe();
const read = (query: unknown): Promise<unknown> =>
  pipe.transform(query, { type: 'query', metatype: TranscriptsQueryDto }).catch((error: unknown) => error);

async function fieldsOf(query: unknown): Promise<string[]> {
  const refusal = await read(query);
  if (!(refusal instanceof InvalidRequestError)) throw new Error('It was not refused.');
  return refusal.details.map(({ field }) => field);
}

/** A query as Express hands it over: names without the prototype's, values once or repeated. */
function asQuery(entries: readonly (readonly [string, string | string[]])[]): object {
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of entries) query[name] = value;
  return query;
}

describe('the query of the operation', () => {
  it('has a limit of 25 and no languages when nothing is said', async () => {
    expect({ ...((await read({})) as object) }).toEqual({ limit: 25 });
  });

  it('is read as a whole, or refused with nothing but names that were given', async () => {
    const name = fc.constantFrom('limit', 'languages', 'limit[]', 'cursor', '__proto__', 'constructor', 'Limit', '');
    const value = fc.oneof(
      fc.constantFrom('1', '007', '100', '101', '0', '-1', '1.5', '1e1', ' 1', '', 'en', 'en,de', '٣'),
      fc.string({ maxLength: 5 }),
      fc.array(fc.constantFrom('1', 'en'), { maxLength: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 }),
        async (entries) => {
          const given = new Map(entries);
          const response = await read(asQuery(entries));
          const limit = given.get('limit');
          const fine =
            [...given.keys()].every((key) => key === 'limit' || key === 'languages') &&
            (limit === undefined || (typeof limit === 'string' && /^0*[1-9][0-9]*$/.test(limit))) &&
            (!given.has('languages') ||
              /^[a-z]{2,8}(-[a-z0-9]{1,8})*(,[a-z]{2,8})*$/i.test(String(given.get('languages')))) &&
            !Array.isArray(given.get('languages'));
          if (!fine) {
            expect(response).toBeInstanceOf(InvalidRequestError);
            const fields = (response as InvalidRequestError).details.map(({ field }) => field);
            expect(fields.length).toBeGreaterThan(0);
            // What cannot be the name of a parameter is not repeated.
            const named = fields.filter((field) => field !== 'query');
            expect(named.filter((field) => ![...given.keys()].some((key) => key.startsWith(field)))).toEqual([]);
            return;
          }
          expect(response).toBeInstanceOf(TranscriptsQueryDto);
          expect((response as TranscriptsQueryDto).limit).toBe(limit === undefined ? 25 : Math.min(Number(limit), 100));
        },
      ),
    );
  });

  it('names every parameter that is wrong at once', async () => {
    expect((await fieldsOf({ limit: '0', languages: '', page: '2', 'limit[]': '3' })).sort()).toEqual([
      'languages',
      'limit',
      'limit',
      'page',
    ]);
  });

  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString'])(
    'refuses %s like any unknown name',
    async (name) => {
      expect(await fieldsOf(asQuery([[name, '1']]))).toEqual([name]);
    },
  );
});
