import { CreateSchema1763683200000 } from './create-schema.js';

/** Every migration, the oldest first; one that was released is never edited. */
export const MIGRATIONS = [CreateSchema1763683200000];
