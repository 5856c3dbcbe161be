import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An API key. Only the hash of the key is stored. */
@Entity('api_keys')
export class ApiKey {
  @PrimaryColumn('text')
  id: string;

  @Column({ type: 'text', name: 'organization_id' })
  organizationId: string;

  @Column('text')
  name: string;

  /** The first characters of the key, which identify it in lists. */
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

  /** Accurate to one minute. */
  @Column({ type: 'timestamptz', name: 'last_used_at', nullable: true })
  lastUsedAt: Date | null;

  /** The ID of the key that replaces it. Both are valid until this one expires. */
  @Column({ type: 'text', name: 'replaced_by', nullable: true })
  replacedBy: string | null;
}
