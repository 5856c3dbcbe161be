import { TestEnvironment } from 'jest-environment-node';

// Jest reports a worker that has not ended within half a second as a leak. One without open handles would spend that time on
// freeing its memory, and on a busy machine more; an explicit exit leaves that to the system.
if (process.send) process.once('beforeExit', () => process.exit());

export default TestEnvironment;
