import type { Plan } from '../domain/plan.js';

/** Whom an API key stands for. */
export interface Caller {
  keyId: string;
  organization: { id: string; name: string; plan: Plan };
}
