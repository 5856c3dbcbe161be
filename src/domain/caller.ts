import type { Plan } from './plan.js';

/** The API key of a call and its organization. */
export interface Caller {
  keyId: string;
  organization: { id: string; name: string; plan: Plan };
}
