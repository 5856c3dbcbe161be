import type { FailedAnswer } from '../egress/upstream-response.js';
import type { InnertubeCall, InnertubeClient, Work } from './innertube-client.js';
import type { MaskVerdict, PartialResponses } from './field-mask-support.js';
import { UnreadableError } from './unreadable-error.js';

/** A request's end, with what was read from its answer. `misread` is an answer that is not what it should be. */
export type Told<T> = { kind: 'told'; value: T } | { kind: 'misread'; expected: string } | FailedAnswer;

/** The same, of a request that a mask was sent with; `ignored` when the whole answer came all the same. */
interface Masked<T> {
  told: Told<T>;
  ignored: boolean;
}

/**
 * Asks for JSON and reads it: with the mask of the call where it is honoured, else without. Rejects only when the work's
 * signal is aborted.
 *
 * @param judge says more about a reading than that it was possible
 */
export async function askMasked<T>(
  innertube: InnertubeClient,
  partial: PartialResponses,
  call: InnertubeCall,
  read: (response: unknown) => T,
  work: Work,
  judge: (value: T) => MaskVerdict = () => 'fine',
): Promise<Told<T>> {
  const ask = async (masked: boolean): Promise<Masked<T>> => {
    const answer = await innertube.post(masked ? call : { ...call, fields: null }, work);
    if (answer.kind !== 'json') return { told: answer, ignored: false };
    return { told: tell(() => read(answer.value)), ignored: masked && answer.whole };
  };
  return (await partial.read(maskKey(call), ask, (masked) => judgeMasked(masked, judge))).told;
}

/** What the finding about a mask is remembered under. */
export function maskKey({ kind, client }: Pick<InnertubeCall, 'kind' | 'client'>): string {
  return `${kind} ${client}`;
}

/** What a reader makes of an answer. */
export function tell<T>(read: () => T): Told<T> {
  try {
    return { kind: 'told', value: read() };
  } catch (error) {
    if (error instanceof UnreadableError) return { kind: 'misread', expected: error.expected };
    throw error;
  }
}

/** A mask that is not understood is told by 400, and one that cuts too much by an answer that cannot be read. */
function judgeMasked<T>({ told, ignored }: Masked<T>, judge: (value: T) => MaskVerdict): MaskVerdict {
  if (ignored) return 'ignored';
  if (told.kind === 'told') return judge(told.value);
  return told.kind === 'misread' || (told.kind === 'http-error' && told.status === 400) ? 'doubtful' : 'failed';
}
