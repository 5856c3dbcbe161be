import type { RequestScope } from '../egress/request-pipeline.js';
import type { InnertubeCall } from '../innertube/clients.js';
import type { InnertubeClient, ParsedResponse } from '../innertube/innertube-client.js';

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
  for (;;) {
    const response = await innertube.query(call, parse, scope);
    const isDone = response.kind === 'parsed' ? isWhole(response.value) : !('incomplete' in response);
    if (isDone || !scope.budget.take()) return response;
  }
}
