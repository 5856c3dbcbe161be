/**
 * The port to a provider of PO tokens, by which the platform recognizes browsers: WEB plays videos and returns captions only
 * with one.
 */
export abstract class PoTokenProvider {
  /**
   * Returns a token bound to a video, or null when none is available. Rejects only when the signal is aborted, with its
   * reason.
   */
  abstract tokenFor(videoId: string, signal: AbortSignal): Promise<string | null>;

  /** Forgets the token of a video after the platform refused it. */
  abstract reject(videoId: string): void;
}

/** Used without `PO_TOKEN_URL`. */
export class NoPoTokenProvider extends PoTokenProvider {
  override tokenFor(): Promise<null> {
    return Promise.resolve(null);
  }

  override reject(): void {
    return;
  }
}
