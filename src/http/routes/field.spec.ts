import { describe, expect, it } from '@jest/globals';
import { CreateJobDto, JobFields } from '../../jobs/dto/jobs-request.dto.js';
import { CreateSubscriptionDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { InvalidRequestError } from '../../domain/errors.js';
import { TextFields, TranscriptsQueryDto } from '../../transcripts/dto/transcripts-query.dto.js';
import { Field, fieldsOf, Fields, jsonSchemaOf, OptionalFields, Picked, Restated, type Form } from './field.js';
import { fromStored, readInput, storedForm, toStored } from './validation.js';

class BoatDto {
  @Field.integer({ min: 1, max: 9, default: 2, description: 'Its masts.' })
  masts: number;

  @Field.words({ words: ['main', 'jib'], description: 'Its sails.', brief: 'Sails.', hint: 'Sails to set.' })
  sails?: readonly string[];

  @Field.text({ rule: 'a name', required: true, description: 'Its name.' })
  name: string;
}

/** What a request is refused with, or the request. */
function read(input: object, form: Form, type = BoatDto): unknown {
  try {
    return { ...readInput(type, input, form) };
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.details.map(({ message }) => message);
    throw error;
  }
}

describe('a field', () => {
  const boat = { masts: 3, sails: ['main', 'jib'], name: 'Marigold' };

  it('is read from a text, from JSON, or from either', () => {
    const text = { masts: '3', sails: 'jib,main', name: 'Marigold' };
    expect(read(text, 'text')).toEqual(boat);
    expect(read(boat, 'json')).toEqual(boat);
    expect(read({ ...boat, masts: '3' }, 'either')).toEqual(boat);
  });

  it('has its default when it is absent, in the order of the class', () => {
    expect(JSON.stringify(read({ name: 'Marigold' }, 'json'))).toBe('{"masts":2,"name":"Marigold"}');
  });

  it('is refused in the words of its form', () => {
    expect(read({ masts: '3', sails: ['spinnaker'], name: 7 }, 'json')).toEqual([
      'masts must be an integer from 1 to 9.',
      'sails must be a list of one or more of main, jib.',
      'name must be a name.',
    ]);
    expect(read({ masts: '3.0', sails: '', name: ['a', 'b'], sail: '' }, 'text')).toEqual([
      'name must be given once.',
      'masts must be an integer from 1 to 9.',
      'sails must be one or more of main, jib, separated by commas.',
      '"sail" is not a parameter of this operation. Did you mean sails? Its parameters: masts, sails, name.',
    ]);
  });

  it('is unknown to a class without fields, which takes nothing', () => {
    class Nothing {}
    expect(readInput(Nothing, {}, 'json')).toEqual({});
    expect(() => readInput(Nothing, { masts: 1 }, 'json')).toThrow(InvalidRequestError);
  });

  it('is described for a model in its own words', () => {
    expect(jsonSchemaOf(BoatDto)).toEqual({
      type: 'object',
      properties: {
        masts: { type: 'integer', minimum: 1, maximum: 9, default: 2, description: 'Its masts.' },
        sails: {
          type: 'array',
          items: { type: 'string', enum: ['main', 'jib'] },
          description: 'Sails to set.',
        },
        name: { type: 'string', description: 'Its name.' },
      },
      required: ['name'],
      additionalProperties: false,
    });
  });

  it('is that of its class in a class that is made of others', () => {
    class Fleet extends Fields(
      Picked(BoatDto, 'name'),
      OptionalFields(Restated(Picked(BoatDto, 'masts'), { masts: { description: 'Masts.' } })),
    ) {}
    expect(Object.keys(fieldsOf(Fleet))).toEqual(['name', 'masts']);
    expect(readInput(Fleet, { name: 'x' }, 'json')).toEqual({ name: 'x' });
    expect(jsonSchemaOf(Fleet)).toMatchObject({ properties: { masts: { maximum: 9, description: 'Masts.' } } });
  });
});

describe('the stored form of a request', () => {
  // As version 1.0 has stored them.
  const JOB = {
    ...{ channel: '@harbourlight', playlist: null, languages: ['en', 'de'], match: 'all', kinds: [], include: [] },
    ...{ chunkSeconds: null, limit: null, since: null, onQuota: 'pause' },
  };
  const SUBSCRIPTION = {
    ...{ channel: '@harbourlight', languages: ['*'], match: 'first', kinds: ['video'], include: ['tags'] },
    ...{ chunkSeconds: 60, checkMinutes: 15, start: 'hl-dinghy__' },
  };

  it('is that of version 1.0 without later fields: state `storedSince: 2` for a field that is added', () => {
    const job = readInput(CreateJobDto, { channel: '@harbourlight', languages: 'EN,de' }, 'json');
    expect(toStored(JobFields, storedForm(JobFields, job))).toEqual(JOB);
    const subscription = readInput(CreateSubscriptionDto, SUBSCRIPTION, 'json');
    expect(toStored(CreateSubscriptionDto, storedForm(CreateSubscriptionDto, subscription))).toEqual(SUBSCRIPTION);
  });

  it('is read as version 1.0 has written it, also without fields that have defaults', () => {
    expect(fromStored(JobFields, { ...JOB, videos: 3, videosHash: 'x' })).toMatchObject(JOB);
    expect(fromStored(CreateSubscriptionDto, SUBSCRIPTION)).toMatchObject(SUBSCRIPTION);
    expect(fromStored(CreateSubscriptionDto, { channel: '@harbourlight' })).toMatchObject({
      ...{ languages: [], match: 'all', kinds: [], include: [], chunkSeconds: null, checkMinutes: 60, start: 'now' },
    });
  });

  it('states a version with a later field, and is not read by an earlier version of the service', () => {
    class LaterDto extends Picked(JobFields, 'channel') {
      @Field.word({ words: ['all', 'manual'], impliedDefault: 'all', storedSince: 2, description: 'Which tracks.' })
      tracks: string;
    }
    const all = storedForm(LaterDto, { channel: '@harbourlight' });
    expect([all, toStored(LaterDto, all)]).toEqual([{ ...all, tracks: 'all' }, { channel: '@harbourlight' }]);
    const manual = storedForm(LaterDto, { channel: '@harbourlight', tracks: 'manual' });
    expect(toStored(LaterDto, manual)).toEqual({ version: 2, channel: '@harbourlight', tracks: 'manual' });
    expect(fromStored(LaterDto, toStored(LaterDto, manual))).toEqual(manual);
    expect(() => fromStored(Picked(JobFields, 'channel'), toStored(LaterDto, manual))).toThrow(
      'a later version of the service',
    );
  });
});

describe('a field of all requests for transcripts', () => {
  it.each(Object.entries(fieldsOf(TextFields)))(
    '%s has short words, for models and commands too',
    (name, { stated }) => {
      const { brief, hint } = stated;
      const where = `${name} in src/transcripts/dto/transcripts-query.dto.ts`;
      expect({ where, brief: (brief ?? '').length > 0, hint: (hint ?? brief ?? '').length <= 150 }).toEqual({
        ...{ where, brief: true, hint: true },
      });
    },
  );

  it.each([TranscriptsQueryDto, CreateJobDto, CreateSubscriptionDto])('is one of %p', (type) => {
    expect(Object.keys(fieldsOf(type))).toEqual(expect.arrayContaining(Object.keys(fieldsOf(TextFields))));
  });
});
