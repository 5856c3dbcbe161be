import { describe, expect, it, jest } from '@jest/globals';
import { CrashRounds, faultsOf, type CrashRound } from './crash-rounds.js';

jest.setTimeout(900_000);

const ROUNDS = 50;

describe('kill -9 at a random point of several calls', () => {
  it(`${ROUNDS} times leaves a book that adds up, no charge without a fetch, and nothing reserved after the lease`, async () => {
    const rounds = await CrashRounds.run(ROUNDS);
    process.stdout.write(`${figures(rounds)}\n`);
    expect(rounds.flatMap(faultsOf)).toEqual([]);
  });
});

function figures(rounds: readonly CrashRound[]): string {
  const sum = (of: (round: CrashRound) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const held = rounds.filter((round) => round.reservedAfterKill > 0);
  const cut = held.filter((round) => round.askedFor > 0);
  return [
    `${rounds.length} rounds, killed after 0 to ${Math.max(...rounds.map((round) => round.killedAfterMs))} ms`,
    `${held.length} left reservations behind (${sum((round) => round.reservedAfterKill)} counts), ${cut.length} of them after fetching had begun`,
    `${sum((round) => round.reservedAfterLease)} counts reserved after the leases`,
    `${sum((round) => round.charged)} transcripts charged, ${sum((round) => round.answered)} answered, ${sum((round) => round.askedFor)} asked for`,
    `${rounds.filter((round) => round.exact && round.verifyExitCode === 0).length} times usage --verify agreed`,
  ].join('\n');
}
