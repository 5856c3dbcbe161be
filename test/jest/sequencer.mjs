import Sequencer from '@jest/test-sequencer';

/** Runs the unit tests last: they are short, so all workers end at about the same time, also where no durations are known yet. */
export default class UnitTestsLast extends Sequencer {
  sort(tests) {
    const isUnit = ({ context }) => Number(context.config.displayName?.name === 'unit');
    return super.sort(tests).sort((a, b) => isUnit(a) - isUnit(b));
  }
}
