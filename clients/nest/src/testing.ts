import type { TranscriptsEvent } from '@channel-transcripts/client';
import type { DynamicModule } from '@nestjs/common';
import { ChannelTranscripts, OPERATION_NAMES, type Operations } from './channel-transcripts.js';
import { ChannelTranscriptsHealthIndicator, PROBE } from './health.js';

/** Replaces `ChannelTranscriptsModule` in tests: it answers what the test says and sends nothing. */
export class ChannelTranscriptsTestingModule {
  /**
   * @param answers the operations that the test expects; any other rejects with an error that names it
   * @param notReady why the service is not ready, for `ChannelTranscriptsHealthIndicator`
   */
  static register(answers: Partial<Operations> = {}, notReady?: string): DynamicModule {
    const unexpected = OPERATION_NAMES.map((name) => {
      const refuse: unknown = name.endsWith('vents') ? noEvents(name) : noAnswer(name);
      return [name, refuse] as const;
    });
    const subscriptions = { follow: noEvents('subscriptions.follow'), feed: noEvents('subscriptions.feed') };
    return {
      module: ChannelTranscriptsTestingModule,
      global: true,
      providers: [
        {
          provide: ChannelTranscripts,
          useValue: { ...Object.fromEntries<unknown>(unexpected), subscriptions, ...answers },
        },
        { provide: PROBE, useValue: () => Promise.resolve(notReady) },
        ChannelTranscriptsHealthIndicator,
      ],
      exports: [ChannelTranscripts, ChannelTranscriptsHealthIndicator],
    };
  }
}

const missing = (name: string): Error =>
  new Error(`The test has no answer for ${name}(): pass { ${name}: … } to ChannelTranscriptsTestingModule.register().`);

const noAnswer = (name: string) => (): Promise<never> => Promise.reject(missing(name));

const noEvents = (name: string) =>
  // eslint-disable-next-line require-yield -- it throws instead of yielding
  async function* (): AsyncGenerator<TranscriptsEvent, void, undefined> {
    throw await Promise.resolve(missing(name));
  };
