import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RecordedReport } from './recorded-report.js';

const report = new RecordedReport(process.env['RECORDINGS_DIR'] ?? '');

beforeAll(() => report.open());
afterAll(() => report.close());

describe('the recorded traffic of the doctor', () => {
  (report.hasChannel ? it : it.skip)('has the channel of the report', async () => {
    const { recorded, played } = await report.channel();
    expect(played).toEqual(recorded);
  });

  (report.hasUploads ? it : it.skip)('lists the uploads of the report', async () => {
    const { recorded, played } = await report.uploads();
    expect(played).toEqual(recorded);
  });

  it('has the outcome of the report for each video that was requested', async () => {
    const outcomes = await report.outcomes();
    if (report.serves) expect(outcomes).not.toEqual([]);
    for (const { recorded, played } of outcomes) expect(played).toEqual(recorded);
  });
});
