import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** What Jest does not see before it has measured it: these take the longest, and some of their files are short. */
const LONGEST = new Set(
  [
    ...['admin/cli-archive', 'cache/redis', 'process/service-process', 'docs/blocks', 'admin/cli-follow'],
    ...['jobs/lists', 'subscriptions/uploads', 'channels/429', 'jobs/worker', 'library/keep', 'auth/keys'],
    ...['admin/cli', 'youtube/whose-fault', 'jobs/results', 'subscriptions/checks', 'youtube/faults', 'jobs/quota'],
    ...['admin/cli-transcripts', 'admin/cli-folders', 'process/npm-scripts', 'proxy/failover', 'http/paths'],
    ...[
      'database/embedded-postgres',
      'channels/slow-reader',
      'channels/5xx',
      'subscriptions/engine',
      'database/unavailable',
    ],
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
