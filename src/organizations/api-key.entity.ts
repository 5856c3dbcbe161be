import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What is kept of an API key. The key itself is not in it. */
@Entity('api_keys')
export class ApiKey {
  @PrimaryColumn('text')
  id: string;

  @Column({ type: 'text', name: 'organization_id' })
  organizationId: string;

  @Column('text')
  name: string;

  /** The first characters of the key, for people to tell keys apart by. */
  @Column('text')
  prefix: string;

  /** SHA-256 of the key. */
  @Column({ type: 'bytea', select: false })
  hash: Buffer;

  @Column({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt: Date | null;

  /** Exact to a minute. */
  @Column({ type: 'timestamptz', name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  /** The key that was issued in its place; until it expires both are good. */
  @Column({ type: 'text', name: 'replaced_by', nullable: true })
  replacedBy: string | null;
}
