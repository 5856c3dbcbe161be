import type { Channel } from '../../domain/transcript.js';
import type { WalkStep } from './walk.js';

/** A page of a check, and what is new on it. */
export interface CheckedPage {
  checked: WalkStep;
  channel: Channel;
  next: string | null;
}
