import { UnknownCursorError } from '../organizations/organization-errors.js';
import type { Job } from './job.js';

/**
 * The place of a job in a list: its creation in milliseconds, which is as exact as it is stored, and its ID. The place stays
 * when the job is deleted.
 */
export interface JobCursor {
  createdAt: Date;
  id: string;
}

const CURSOR = /^([0-9]{1,13})\.(job_[0-9A-Za-z]{22})$/;

export function toCursor({ createdAt, id }: Pick<Job, 'createdAt' | 'id'>): string {
  return `${Date.parse(createdAt)}.${id}`;
}

/** @throws UnknownCursorError */
export function parseCursor(text: string): JobCursor {
  const [, createdAtMs, id] = CURSOR.exec(text) ?? [];
  if (createdAtMs === undefined || id === undefined) throw new UnknownCursorError(text);
  return { createdAt: new Date(Number(createdAtMs)), id };
}

/** The part of a list of jobs, newest first, that has up to `count` of the rows, and the cursor of the next part. */
export function toJobsPage<T extends Job>(rows: readonly T[], count: number): { items: T[]; next: string | null } {
  const items = rows.slice(0, count);
  const last = items.at(-1);
  return { items, next: last && rows.length > count ? toCursor(last) : null };
}
