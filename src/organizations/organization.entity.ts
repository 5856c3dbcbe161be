import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { Plan } from '../domain/plan.js';

/** A customer. IDs are unique; names need not be. */
@Entity('organizations')
export class Organization {
  @PrimaryColumn('text')
  id: string;

  @Column('text')
  name: string;

  @Column('text')
  plan: Plan;

  /** Transcripts per month; null for the limit of the plan. */
  @Column({ type: 'integer', name: 'monthly_limit', nullable: true })
  monthlyLimit: number | null;

  @Column({ type: 'timestamptz', name: 'created_at', insert: false })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'deleted_at', nullable: true, select: false })
  deletedAt: Date | null;
}
