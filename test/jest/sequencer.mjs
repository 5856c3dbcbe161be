import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** What Jest does not see before it has measured it: these take the longest, and some of their files are short. */
const LONGEST = new Set(
  [
    ...['admin/cli-archive', 'subscriptions/finality', 'jobs/worker', 'process/service-process', 'jobs/refused-lists'],
    ...['subscriptions/checks', 'subscriptions/old-dates', 'auth/keys', 'jobs/list-incomplete', 'docs/blocks'],
    ...['admin/cli-transcripts', 'youtube/faults', 'cache/slow-line', 'admin/cli-follow', 'process/npm-scripts'],
    ...['http/paths', 'database/embedded-postgres', 'jobs/accounting', 'proxy/failover', 'channels/ndjson'],
  ].map((name) => `test/${name}.e2e-spec.ts`),
);

/** Runs the longest files first and the unit tests, which are short, last, so that all workers end at about the same time. */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const turn = ({ context, path }) => {
      if (context.config.displayName?.name === 'unit') return 2;
      return LONGEST.has(relative(context.config.rootDir, path)) ? 0 : 1;
    };
    return super.sort(tests).sort((a, b) => turn(a) - turn(b));
  }
}
