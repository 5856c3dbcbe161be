import type { Upload } from '../domain/transcript.js';
import type { ChangedJob, JobReason } from './job.js';

/** A slice that this process runs. */
export interface ClaimedSlice extends ChangedJob {
  claim: string;
  /** The key that created the job. */
  keyId: string;
  /** False when the plan of the organization does not include jobs any more. */
  planIncludesJobs: boolean;
  organizationDeleted: boolean;
  /** Whether the list of the uploads is complete. */
  listed: boolean;
  /** Where the list goes on; undefined for its first page. */
  continuation: string | undefined;
  /** Consecutive slices that the platform did not serve. */
  setbacks: number;
  /** The time of the database. */
  now: Date;
}

export interface PendingVideo {
  position: number;
  upload: Upload;
  /** How often it was tried again. */
  retries: number;
}

/** What becomes of a pending video. */
export type VideoChange = { position: number } & (
  | { state: 'pending'; retryAfterSeconds: number }
  | { state: 'succeeded'; cached: boolean; length: number; bytes: number; crc: number }
  | { state: 'failed'; length: number; bytes: number; crc: number }
);

/** The SQLSTATE of a slice whose reservation ended before it was stored. */
export const SLICE_EXPIRED = 'CT001';

/** How a slice ends. */
export interface SliceEnd {
  /** The state of the job, unless it is complete or was canceled; by default it goes on. */
  change?: { state: 'paused' | 'failed' | 'canceled'; reason: JobReason | null };
  /** Until the next slice; undefined for at once, or for none while the job is paused. */
  delaySeconds?: number;
  setbacks?: number;
  /** Reads the list again from its first page. */
  restartList?: boolean;
}

/** Transcripts that a slice fetched for a reservation. */
interface Settlement {
  id: string;
  fetched: number;
}

export interface SliceResults {
  settlements: readonly Settlement[];
  videos: readonly VideoChange[];
  /** The stored forms of the decided videos, joined in the order of their positions. */
  entries: Buffer;
}

export const NO_RESULTS: SliceResults = { settlements: [], videos: [], entries: Buffer.alloc(0) };
