/** The plans, in ascending order. */
export const PLANS = ['free', 'pro'] as const;
export type Plan = (typeof PLANS)[number];

export const PLAN_NAMES: Readonly<Record<Plan, string>> = { free: 'Free', pro: 'Pro' };

/** The lowest plan that includes each feature. */
const REQUIRED_PLAN = {
  video_transcripts: 'free',
  channel_uploads: 'free',
  channel_transcripts: 'pro',
  bulk_transcripts: 'pro',
  channel_archives: 'pro',
  channel_subscriptions: 'pro',
  library: 'pro',
} as const satisfies Record<string, Plan>;

export type Feature = keyof typeof REQUIRED_PLAN;

export function requiredPlan(feature: Feature): Plan {
  return REQUIRED_PLAN[feature];
}

export function planIncludes(plan: Plan, feature: Feature): boolean {
  return PLANS.indexOf(plan) >= PLANS.indexOf(REQUIRED_PLAN[feature]);
}

/** The maximum number of videos in one call, on plans that include calls for many videos. */
export const VIDEOS_PER_CALL_MAX = 100;
