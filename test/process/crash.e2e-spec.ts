import { describe, expect, it, jest } from '@jest/globals';
import { CrashRounds, faultsOf } from './crash-rounds.js';

// Every round starts the service and kills it; fifty of them are a part of `npm run chaos`.
jest.setTimeout(180_000);

describe('kill -9 at a random point of several calls', () => {
  it('leaves an exact usage, no charge without a fetch, and no reservation after the lease, three times', async () => {
    expect((await CrashRounds.run(3)).flatMap(faultsOf)).toEqual([]);
  });
});
