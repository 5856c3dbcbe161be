import { CreateJobSlices1763683209000 } from './create-job-slices.js';
import { CreateJobs1763683208000 } from './create-jobs.js';
import { CreateOrganizations1763683200000 } from './create-organizations.js';
import { CreateQuotaClock1763683202000 } from './create-quota-clock.js';
import { CreateQuotaLedger1763683203000 } from './create-quota-ledger.js';
import { CreateQuotaPruneBatch1763683206000 } from './create-quota-prune-batch.js';
import { CreateQuotaPrune1763683204000 } from './create-quota-prune.js';
import { CreateQuotaReservationIds1763683205000 } from './create-quota-reservation-ids.js';
import { CreateQuotaTables1763683201000 } from './create-quota-tables.js';
import { CreateWebhooks1763683206500 } from './create-webhooks.js';

/** Every migration, the oldest first; one that was released is never edited. */
export const MIGRATIONS = [
  CreateOrganizations1763683200000,
  CreateQuotaTables1763683201000,
  CreateQuotaClock1763683202000,
  CreateQuotaLedger1763683203000,
  CreateQuotaPrune1763683204000,
  CreateQuotaReservationIds1763683205000,
  CreateQuotaPruneBatch1763683206000,
  CreateWebhooks1763683206500,
  CreateJobs1763683208000,
  CreateJobSlices1763683209000,
];
