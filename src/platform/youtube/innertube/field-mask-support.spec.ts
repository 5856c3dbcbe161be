import { describe, expect, it } from '@jest/globals';
import { type MaskVerdict, FieldMaskSupport } from './field-masks.js';

/** Reads with a client whose masked and whole answers look like this; says how it was asked. */
async function read(fieldMasks: FieldMaskSupport, masked: MaskVerdict, whole: MaskVerdict) {
  const asked: string[] = [];
  const ask = (withMask: boolean) => {
    asked.push(withMask ? 'masked' : 'whole');
    return Promise.resolve(withMask ? masked : whole);
  };
  const reading = await fieldMasks.query('player X', ask, (verdict) => verdict);
  return { asked, reading };
}

describe('FieldMaskSupport', () => {
  it('a mask that works is used, and nothing is asked twice', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect(await read(fieldMasks, 'proof', 'proof')).toEqual({ asked: ['masked'], reading: 'proof' });
    expect(fieldMasks.isProved('player X')).toBe(true);
  });

  it('a client that says more without the mask is asked without it from then on, and it is told once', async () => {
    const unsupported: string[] = [];
    const fieldMasks = new FieldMaskSupport((key) => unsupported.push(key));
    expect(await read(fieldMasks, 'doubtful', 'proof')).toEqual({ asked: ['masked', 'whole'], reading: 'proof' });
    expect(await read(fieldMasks, 'doubtful', 'proof')).toEqual({ asked: ['whole'], reading: 'proof' });
    expect(unsupported).toEqual(['player X']);
  });

  it('a client that says no more without the mask keeps it', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect((await read(fieldMasks, 'doubtful', 'doubtful')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['masked']);
  });

  it('a client that ignores the mask is not asked twice, and is asked without it from then on', async () => {
    const unsupported: string[] = [];
    const fieldMasks = new FieldMaskSupport((key) => unsupported.push(key));
    expect((await read(fieldMasks, 'ignored', 'proof')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'ignored', 'proof')).asked).toEqual(['whole']);
    expect(unsupported).toEqual(['player X']);
  });

  it('trouble on the way proves nothing against the mask', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect((await read(fieldMasks, 'failed', 'proof')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'doubtful', 'failed')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['masked']);
  });
});
