import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { Plan } from '../domain/plan.js';

/** A customer. Names need not be unique; ids are. */
@Entity('organizations')
export class Organization {
  @PrimaryColumn('text')
  id: string;

  @Column('text')
  name: string;

  @Column('text')
  plan: Plan;

  /** Transcripts a month; null follows the plan. */
  @Column({ type: 'integer', name: 'monthly_limit', nullable: true })
  monthlyLimit: number | null;

  @Column({ type: 'timestamptz', name: 'created_at', insert: false })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'deleted_at', nullable: true, select: false })
  deletedAt: Date | null;
}
