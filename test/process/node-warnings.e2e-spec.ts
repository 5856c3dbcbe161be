import { spawnSync } from 'node:child_process';
import { expect, describe, it } from '@jest/globals';

/** What a program prints that imports from the build. Within Jest nobody hears the warnings of Node.js. */
function outputOf(script: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  return stdout + stderr;
}

describe('no warning of Node.js, which is not JSON, is printed', () => {
  it('when many settlements wait', () => {
    const output = outputOf(`
      import { Registry } from 'prom-client';
      import { QuotaMetrics } from './dist-tools/src/quota/quota-metrics.js';
      import { SettlementRetries } from './dist-tools/src/quota/settlement-retries.js';
      const retries = new SettlementRetries(new QuotaMetrics(new Registry()));
      let attempts = 0;
      for (let index = 0; index < 20; index++)
        void retries.untilSettled({ id: 'r', organizationId: 'o', leaseEndsAtMs: Infinity }, 0, async () => {
          if (++attempts === 40) setImmediate(() => void retries.onApplicationShutdown());
          throw new Error('The database is unavailable.');
        });`);
    expect(output).toContain('The database is unavailable.');
    expect(output).not.toContain('MaxListeners');
  });

  it('when many rounds of a loop pause, are woken or fail', () => {
    const output = outputOf(`
      import { setImmediate as nextTurn } from 'node:timers/promises';
      import { Registry } from 'prom-client';
      import { BackgroundLoops } from './dist-tools/src/background/background-loops.js';
      const loops = new BackgroundLoops(new Registry());
      const idle = loops.create('idle', 3_600_000, async () => {});
      idle.start(100);
      loops.create('failing', 3_600_000, async () => { throw new Error('Nothing answers.'); }).start(100);
      for (let wakes = 0; wakes < 2; wakes++) {
        await nextTurn();
        idle.wake();
      }
      await nextTurn();
      await loops.stop();`);
    expect(output).toContain('Nothing answers.');
    expect(output).not.toContain('MaxListeners');
  });

  it('when many calls and pauses of the client share a signal', () => {
    const output = outputOf(`
      import { ChannelTranscriptsClient } from '@channel-transcripts/client';
      const subscription = { nextCheckAt: null, summary: { pending: 0 } };
      const line = JSON.stringify({ type: 'summary', next: '1.aaaaaaaa', subscription }) + '\\n';
      const stop = new AbortController();
      let reads = 0;
      const client = new ChannelTranscriptsClient({
        baseUrl: 'http://127.0.0.1:9',
        token: async () => 'token',
        fetch: async () => {
          if (++reads === 50) setTimeout(() => stop.abort(new Error('The program ends.')));
          return new Response(line);
        },
      });
      const loops = Array.from({ length: 50 }, () => client.subscriptions.follow('sub_1', { signal: stop.signal }).next());
      const ends = await Promise.allSettled(loops);
      console.log(ends.filter(({ reason }) => reason?.message === 'The program ends.').length, 'ended');`);
    expect(output).toBe('50 ended\n');
  });
});
