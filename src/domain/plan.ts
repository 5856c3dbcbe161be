/** The plans, in ascending order. */
export const PLANS = ['free', 'pro'] as const;
export type Plan = (typeof PLANS)[number];

export type Feature = 'channel_transcripts';

/** The lowest plan that includes each feature. */
const REQUIRED_PLAN: Record<Feature, Plan> = { channel_transcripts: 'pro' };

export function requiredPlan(feature: Feature): Plan {
  return REQUIRED_PLAN[feature];
}

export function planIncludes(plan: Plan, feature: Feature): boolean {
  return PLANS.indexOf(plan) >= PLANS.indexOf(REQUIRED_PLAN[feature]);
}

/** The maximum number of videos in one call, on plans with channel transcripts. */
export const VIDEOS_PER_CALL_MAX = 100;
