import type { FailedResponse } from '../egress/upstream-response.js';
import type { InnertubeCall, InnertubeClient, RequestScope } from './innertube-client.js';
import type { MaskVerdict, FieldMaskSupport } from './field-mask-support.js';
import { UnreadableError } from './unreadable-error.js';

/** A request's end, with what was read from its answer. `misread` is an answer that is not what it should be. */
export type ParsedResponse<T> =
  { kind: 'parsed'; value: T } | { kind: 'unparsable'; expected: string } | FailedResponse;

/** The same, of a request that a mask was sent with; `ignored` when the whole answer came all the same. */
interface MaskedResponse<T> {
  parsed: ParsedResponse<T>;
  ignored: boolean;
}

/**
 * Asks for JSON and reads it: with the mask of the call where it is honoured, else without. Rejects only when the work's
 * signal is aborted.
 *
 * @param judge says more about a reading than that it was possible
 */
export async function postWithFieldMask<T>(
  innertube: InnertubeClient,
  fieldMasks: FieldMaskSupport,
  call: InnertubeCall,
  read: (response: unknown) => T,
  scope: RequestScope,
  judge: (value: T) => MaskVerdict = () => 'fine',
): Promise<ParsedResponse<T>> {
  const ask = async (masked: boolean): Promise<MaskedResponse<T>> => {
    const response = await innertube.post(masked ? call : { ...call, fields: null }, scope);
    if (response.kind !== 'json') return { parsed: response, ignored: false };
    return { parsed: parse(() => read(response.value)), ignored: masked && response.whole };
  };
  return (await fieldMasks.read(fieldMaskKey(call), ask, (masked) => judgeMaskedResponse(masked, judge))).parsed;
}

/** What the finding about a mask is remembered under. */
export function fieldMaskKey({ kind, client }: Pick<InnertubeCall, 'kind' | 'client'>): string {
  return `${kind} ${client}`;
}

/** What a reader makes of an answer. */
export function parse<T>(read: () => T): ParsedResponse<T> {
  try {
    return { kind: 'parsed', value: read() };
  } catch (error) {
    if (error instanceof UnreadableError) return { kind: 'unparsable', expected: error.expected };
    throw error;
  }
}

/** A mask that is not understood is told by 400, and one that cuts too much by an answer that cannot be read. */
function judgeMaskedResponse<T>({ parsed, ignored }: MaskedResponse<T>, judge: (value: T) => MaskVerdict): MaskVerdict {
  if (ignored) return 'ignored';
  if (parsed.kind === 'parsed') return judge(parsed.value);
  return parsed.kind === 'unparsable' || (parsed.kind === 'http-error' && parsed.status === 400)
    ? 'doubtful'
    : 'failed';
}
