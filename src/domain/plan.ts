/** The plans an organization can be on, the smaller one first. */
export const PLANS = ['free', 'pro'] as const;
export type Plan = (typeof PLANS)[number];

export type Feature = 'channel_transcripts';

/** The smallest plan that includes each feature. */
const REQUIRED_PLAN: Record<Feature, Plan> = { channel_transcripts: 'pro' };

export function requiredPlan(feature: Feature): Plan {
  return REQUIRED_PLAN[feature];
}

export function planIncludes(plan: Plan, feature: Feature): boolean {
  return PLANS.indexOf(plan) >= PLANS.indexOf(REQUIRED_PLAN[feature]);
}

/** How many videos one call may ask for, on the plan that has channel transcripts. */
export const VIDEOS_PER_CALL_MAX = 100;
