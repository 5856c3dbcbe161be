/** When a video is tried again, in seconds after each failure. */
export const RETRY_DELAYS_SECONDS = [600, 3_600, 21_600] as const;

const SETBACK_DELAY_SECONDS = 30;
const SETBACK_DELAY_SECONDS_MAX = 900;

/** When a slice is tried again that the platform did not serve: the pause doubles with each consecutive setback. */
export function setbackDelaySeconds(setbacks: number): number {
  return Math.min(SETBACK_DELAY_SECONDS_MAX, SETBACK_DELAY_SECONDS * 2 ** Math.min(setbacks, 10));
}
