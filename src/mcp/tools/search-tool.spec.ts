import { describe, expect, it, jest } from '@jest/globals';
import { storedText } from '../../../test/stored-text.js';
import { NO_DETAILS, unlistedVideo } from '../../domain/transcript.js';
import { emptySummary, succeededEntry, type TranscriptsEvent } from '../../transcripts/transcript-events.js';
import { searchChannelTranscripts } from './search-tool.js';
import { CallCanceled, type ToolCall, type ToolServices } from './tool.js';

describe('a search of cached videos', () => {
  it('ends when the client disconnects, without reading the other videos', async () => {
    const client = new AbortController();
    const disconnect = jest.fn();
    let yielded = 0;
    async function* events(): AsyncGenerator<TranscriptsEvent> {
      for (const videoId of ['hl-dinghy__', 'hl-walk____', 'hl-island__', 'hl-stream__']) {
        await Promise.resolve();
        const entry = succeededEntry(
          unlistedVideo(videoId),
          NO_DETAILS,
          storedText('{"en":[{"text":"tide","start":0,"duration":1}]}'),
          true,
        );
        yielded++;
        yield { type: 'result', entry };
      }
    }
    const plan = { call: { disconnect }, order: [], videos: [], header: { type: 'videos' }, resource: 'videos' };
    const services = {
      uploads: { source: () => undefined },
      transcripts: {
        prepare: () => Promise.resolve(plan),
        deliver: () => ({ summary: emptySummary(), events }),
      },
    };
    const call = {
      context: { caller: { organization: { id: 'org_1' } }, log: {} },
      times: { startedAtMs: 0, responseEnd: client.signal },
      progress: (videos: number) => void (videos === 2 && client.abort()),
    };
    const running = searchChannelTranscripts.run(
      { channel: '@harbourlight', query: 'tide' },
      call as unknown as ToolCall,
      services as unknown as ToolServices,
    );
    await expect(running).rejects.toBeInstanceOf(CallCanceled);
    expect(yielded).toBe(3);
    expect(disconnect).toHaveBeenCalledTimes(1);
  });
});
