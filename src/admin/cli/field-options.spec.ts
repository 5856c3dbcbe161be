import { expect, it } from '@jest/globals';
import { AuditQueryDto } from '../http/dto/requests.dto.js';
import { fieldOption } from './field-options.js';

it('an option treats values above the cap of its field as the cap, as its help says', () => {
  const option = fieldOption(AuditQueryDto, 'limit');
  expect(option.description).toContain('Values above 100 are treated as 100.');
  expect(['7', '100', '101'].map((text) => option.parseArg?.(text, undefined))).toEqual([7, 100, 100]);
});
