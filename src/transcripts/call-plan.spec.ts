import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { limitThatFits, requiredCount } from './call-plan.js';

const video = fc.boolean().map((known) => ({ outcome: known ? {} : undefined }));

describe('the limit that a refused call is told', () => {
  it('is the largest whose videos cost no more than what remains', () => {
    fc.assert(
      fc.property(fc.array(video, { maxLength: 100 }), fc.integer({ min: -5, max: 105 }), (videos, remaining) => {
        const fitting = Array.from({ length: videos.length + 1 }, (_, limit) => limit).filter(
          (limit) => requiredCount(videos.slice(0, limit)) <= Math.max(0, remaining),
        );
        expect(limitThatFits(videos, remaining)).toBe(Math.max(...fitting));
      }),
    );
  });

  it('is none when the first video costs one count and none is left', () => {
    expect(limitThatFits([{ outcome: undefined }, { outcome: {} }], 0)).toBe(0);
    expect(limitThatFits([{ outcome: undefined }], -3)).toBe(0);
  });

  it('reaches over videos that cost nothing', () => {
    expect(limitThatFits([{ outcome: {} }, { outcome: {} }, { outcome: undefined }, { outcome: {} }], 0)).toBe(2);
  });
});

describe('the count that a call needs', () => {
  it('is the number of videos of which nothing is known', () => {
    expect(requiredCount([{ outcome: undefined }, { outcome: {} }, { outcome: undefined }])).toBe(2);
    expect(requiredCount([])).toBe(0);
  });
});
