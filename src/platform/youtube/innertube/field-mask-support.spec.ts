import { describe, expect, it } from '@jest/globals';
import { type MaskVerdict, PartialResponses } from './field-mask-support.js';

/** Reads with a client whose masked and whole answers look like this; says how it was asked. */
async function read(partial: PartialResponses, masked: MaskVerdict, whole: MaskVerdict) {
  const asked: string[] = [];
  const ask = (withMask: boolean) => {
    asked.push(withMask ? 'masked' : 'whole');
    return Promise.resolve(withMask ? masked : whole);
  };
  const reading = await partial.read('player X', ask, (verdict) => verdict);
  return { asked, reading };
}

describe('PartialResponses', () => {
  it('a mask that works is used, and nothing is asked twice', async () => {
    const partial = new PartialResponses();
    expect(await read(partial, 'proof', 'proof')).toEqual({ asked: ['masked'], reading: 'proof' });
    expect(partial.isProved('player X')).toBe(true);
  });

  it('a client that says more without the mask is asked without it from then on, and it is told once', async () => {
    const told: string[] = [];
    const partial = new PartialResponses((key) => told.push(key));
    expect(await read(partial, 'doubtful', 'proof')).toEqual({ asked: ['masked', 'whole'], reading: 'proof' });
    expect(await read(partial, 'doubtful', 'proof')).toEqual({ asked: ['whole'], reading: 'proof' });
    expect(told).toEqual(['player X']);
  });

  it('a client that says no more without the mask keeps it', async () => {
    const partial = new PartialResponses();
    expect((await read(partial, 'doubtful', 'doubtful')).asked).toEqual(['masked', 'whole']);
    expect((await read(partial, 'proof', 'proof')).asked).toEqual(['masked']);
  });

  it('a client that ignores the mask is not asked twice, and is asked without it from then on', async () => {
    const told: string[] = [];
    const partial = new PartialResponses((key) => told.push(key));
    expect((await read(partial, 'ignored', 'proof')).asked).toEqual(['masked']);
    expect((await read(partial, 'ignored', 'proof')).asked).toEqual(['whole']);
    expect(told).toEqual(['player X']);
  });

  it('trouble on the way proves nothing against the mask', async () => {
    const partial = new PartialResponses();
    expect((await read(partial, 'failed', 'proof')).asked).toEqual(['masked']);
    expect((await read(partial, 'doubtful', 'failed')).asked).toEqual(['masked', 'whole']);
    expect((await read(partial, 'proof', 'proof')).asked).toEqual(['masked']);
  });
});
