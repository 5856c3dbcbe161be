import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { limitThatFits, requiredCount } from './call-plan.js';

const video = fc.boolean().map((known) => ({ outcome: known ? {} : undefined }));

describe('limitThatFits', () => {
  it('is the largest limit whose videos cost at most the remaining quota', () => {
    fc.assert(
      fc.property(fc.array(video, { maxLength: 100 }), fc.integer({ min: -5, max: 105 }), (videos, remaining) => {
        const fitting = Array.from({ length: videos.length + 1 }, (_, limit) => limit).filter(
          (limit) => requiredCount(videos.slice(0, limit)) <= Math.max(0, remaining),
        );
        expect(limitThatFits(videos, remaining)).toBe(Math.max(...fitting));
      }),
    );
  });

  it('counts a video that occurs several times once', () => {
    const [one, two] = [{ outcome: undefined }, { outcome: undefined }];
    expect(limitThatFits([one, one, two, one], 1)).toBe(2);
    expect(limitThatFits([one, one, two, one], 2)).toBe(4);
    expect(limitThatFits([one, one], 0)).toBe(0);
  });
});
