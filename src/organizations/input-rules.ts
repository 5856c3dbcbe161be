import { PLANS, type Plan } from '../domain/plan.js';
import { redactApiKeys } from '../domain/api-key-text.js';
import {
  GRACE_HOURS_MAX,
  InvalidLifetimeError,
  InvalidLimitError,
  InvalidNameError,
  KEY_LIFETIME_DAYS_MAX,
  MONTHLY_LIMIT_MAX,
  NAME_LENGTH_MAX,
  UnknownPlanError,
} from './organization-errors.js';

/** Control characters, lone surrogates and line separators. */
const FORBIDDEN_IN_NAME = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Trims the name of an organization or a key.
 *
 * @throws InvalidNameError unless it has 1 to 100 characters, none of them a control character, and contains no API key
 */
export function parseName(text: string): string {
  const name = text.trim();
  const length = Array.from(name).length;
  if (length < 1 || length > NAME_LENGTH_MAX || FORBIDDEN_IN_NAME.test(name)) throw new InvalidNameError();
  // Names are stored and displayed; keys must never be.
  if (redactApiKeys(name) !== name) throw new InvalidNameError('name must not contain an API key.');
  return name;
}

/** @throws UnknownPlanError */
export function parsePlan(text: string): Plan {
  const plan = PLANS.find((known) => known === text);
  if (!plan) throw new UnknownPlanError(text);
  return plan;
}

/** @param limit transcripts per month; null for the limit of the plan @throws InvalidLimitError */
export function checkMonthlyLimit(limit: number | null): number | null {
  if (limit !== null && !isIntegerBetween(limit, 0, MONTHLY_LIMIT_MAX)) throw new InvalidLimitError();
  return limit;
}

/** @throws InvalidLifetimeError */
export function checkLifetimeDays(days: number): void {
  if (!isIntegerBetween(days, 1, KEY_LIFETIME_DAYS_MAX)) {
    throw new InvalidLifetimeError('expiresInDays', 1, KEY_LIFETIME_DAYS_MAX);
  }
}

/** @throws InvalidLifetimeError */
export function checkGraceHours(hours: number): void {
  if (!isIntegerBetween(hours, 0, GRACE_HOURS_MAX)) throw new InvalidLifetimeError('graceHours', 0, GRACE_HOURS_MAX);
}

function isIntegerBetween(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}
