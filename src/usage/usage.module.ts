import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { QuotaModule } from '../quota/quota.module.js';
import { UsageController } from './usage.controller.js';

@Module({ imports: [AuthModule, QuotaModule], controllers: [UsageController] })
export class UsageModule {}
