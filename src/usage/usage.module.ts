import { Module } from '@nestjs/common';
import { AccessModule } from '../auth/auth.module.js';
import { QuotaModule } from '../quota/quota.module.js';
import { UsageController } from './usage.controller.js';

@Module({ imports: [AccessModule, QuotaModule], controllers: [UsageController] })
export class UsageModule {}
