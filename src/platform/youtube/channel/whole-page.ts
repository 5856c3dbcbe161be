import type { RequestScope } from '../egress/request-pipeline.js';
import type { InnertubeCall } from '../innertube/clients.js';
import type { InnertubeClient, ParsedResponse } from '../innertube/innertube-client.js';
import { IncompletePageError } from '../response-parsing.js';

/**
 * Sends a call and parses its JSON. An incomplete page is asked for again like a 5xx, within the retries of the scope.
 *
 * @param parse throws `UnreadableError`, of which an `IncompletePageError` stays `unparsable` after the retries
 * @param isWhole whether a page that was parsed is worth no retry; after the retries it is taken as it is
 */
export async function queryWhole<T>(
  innertube: InnertubeClient,
  call: InnertubeCall,
  parse: (page: unknown) => T,
  scope: RequestScope,
  isWhole: (value: T) => boolean = () => true,
): Promise<ParsedResponse<T>> {
  // A value and no error: `query` takes an error as a sign that the field mask is at fault.
  const tolerant = (page: unknown): { value: T } | IncompletePageError => {
    try {
      return { value: parse(page) };
    } catch (error) {
      if (error instanceof IncompletePageError) return error;
      throw error;
    }
  };
  for (;;) {
    const response = await innertube.query(call, tolerant, scope);
    if (response.kind !== 'parsed') return response;
    const { value: read } = response;
    const missing = read instanceof IncompletePageError;
    if ((missing || !isWhole(read.value)) && scope.budget.take()) continue;
    return missing ? { kind: 'unparsable', expected: read.expected } : { kind: 'parsed', value: read.value };
  }
}
