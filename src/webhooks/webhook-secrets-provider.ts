import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Environment } from '../config/environment.js';
import { WEBHOOK_EXISTS } from './webhook-queries.js';
import { WebhookSecrets } from './webhook-secrets.js';

/** Derives the encryption keys when they are first needed: that takes 0.1 s of CPU and 32 MB, and many have no webhooks. */
@Injectable()
export class WebhookSecretsProvider {
  private secrets: Promise<WebhookSecrets> | undefined;

  constructor(
    private readonly database: DataSource,
    private readonly environment: Environment,
  ) {}

  /** Rejects as `WebhookSecrets.open` does, and tries again with the next call. */
  get(): Promise<WebhookSecrets> {
    this.secrets ??= WebhookSecrets.open(this.environment).catch((error: unknown) => {
      this.secrets = undefined;
      throw error;
    });
    return this.secrets;
  }

  /** Undefined while no webhook is stored. Rejects with an error of the database too. */
  async getForStored(): Promise<WebhookSecrets | undefined> {
    if (this.secrets) return this.secrets;
    const rows = await this.database.query<unknown[]>(WEBHOOK_EXISTS);
    return rows.length === 0 ? undefined : this.get();
  }
}
