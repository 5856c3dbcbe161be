/** Why the platform refuses the caller rather than the thing asked for. */
export type BlockReason =
  | 'too-many-requests'
  | 'captcha'
  | 'consent'
  | 'empty-body'
  /** Not sent: the exit was found to be refused while this waited for its turn. */
  | 'exit-shut';

/** What became of one outgoing request when there is no answer to read. */
export type FailedResponse =
  | { kind: 'blocked'; reason: BlockReason; retryAfterSeconds: number | null }
  /** Another status than 2xx. */
  | { kind: 'http-error'; status: number; media: Media }
  | { kind: 'timeout' }
  | { kind: 'network'; cause: unknown }
  /** Something came that cannot be what was asked for. */
  | { kind: 'unreadable'; expected: string };

export type Media = 'json' | 'xml' | 'html' | 'other' | 'empty';

/** One outgoing request's end: a 2xx answer with its text, or why there is none. */
export type UpstreamResponse = { kind: 'ok'; media: Media; body: string } | FailedResponse;

/** The same for a request whose answer is JSON. */
export type JsonResponse =
  | {
      kind: 'json';
      value: unknown;
      /** It has what no mask asks for and every whole answer has, so that a mask that was sent was ignored. */
      whole: boolean;
    }
  | FailedResponse;

/** One word for a log or a counter; it never holds anything that the platform sent. */
export function outcomeOf(response: UpstreamResponse | JsonResponse): string {
  switch (response.kind) {
    case 'ok':
      // How a caption URL refuses, and a word of its own for that reason.
      return response.media === 'empty' ? 'empty' : 'ok';
    case 'json':
      return 'ok';
    case 'blocked':
      return `blocked:${response.reason}`;
    case 'http-error':
      return `http-${response.status}`;
    case 'timeout':
    case 'network':
    case 'unreadable':
      return response.kind;
  }
}
