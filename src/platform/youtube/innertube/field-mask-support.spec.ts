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
  it('uses a mask that works, without a second request', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect(await read(fieldMasks, 'proof', 'proof')).toEqual({ asked: ['masked'], reading: 'proof' });
    expect(fieldMasks.isProved('player X')).toBe(true);
  });

  it('stops using a mask when the client returns more without it, and reports that once', async () => {
    const unsupported: string[] = [];
    const fieldMasks = new FieldMaskSupport((key) => unsupported.push(key));
    expect(await read(fieldMasks, 'doubtful', 'proof')).toEqual({ asked: ['masked', 'whole'], reading: 'proof' });
    expect(await read(fieldMasks, 'doubtful', 'proof')).toEqual({ asked: ['whole'], reading: 'proof' });
    expect(unsupported).toEqual(['player X']);
  });

  it('continues to use a mask when the client returns no more without it', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect((await read(fieldMasks, 'doubtful', 'doubtful')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['masked']);
  });

  it('stops using a mask that the client ignores, without a second request', async () => {
    const unsupported: string[] = [];
    const fieldMasks = new FieldMaskSupport((key) => unsupported.push(key));
    expect((await read(fieldMasks, 'ignored', 'proof')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'ignored', 'proof')).asked).toEqual(['whole']);
    expect(unsupported).toEqual(['player X']);
  });

  it('does not blame the mask for a failed request', async () => {
    const fieldMasks = new FieldMaskSupport();
    expect((await read(fieldMasks, 'failed', 'proof')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'doubtful', 'failed')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['masked']);
  });

  it('checks a rejected request once without the mask, and again only after a success', async () => {
    const unsupported: string[] = [];
    const fieldMasks = new FieldMaskSupport((key) => unsupported.push(key));
    expect((await read(fieldMasks, 'rejected', 'rejected')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'rejected', 'rejected')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['masked']);
    expect((await read(fieldMasks, 'rejected', 'failed')).asked).toEqual(['masked', 'whole']);
    expect((await read(fieldMasks, 'rejected', 'doubtful')).asked).toEqual(['masked', 'whole']);
    expect(unsupported).toEqual(['player X']);
    expect((await read(fieldMasks, 'proof', 'proof')).asked).toEqual(['whole']);
  });

  it.each(['rejected', 'proof'] as const)(
    'checks concurrently rejected requests once; without the mask the platform responds with %s',
    async (whole) => {
      const fieldMasks = new FieldMaskSupport();
      const readings = await Promise.all([1, 2, 3].map(() => read(fieldMasks, 'rejected', whole)));
      expect(readings.map(({ reading }) => reading)).toEqual([whole, whole, whole]);
      const checks = readings.flatMap(({ asked }) => asked).filter((each) => each === 'whole').length;
      expect(checks).toBe(whole === 'rejected' ? 1 : 3);
    },
  );
});
