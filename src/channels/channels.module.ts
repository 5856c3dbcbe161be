import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { ChannelsController } from './channels.controller.js';

@Module({ imports: [AuthModule, TranscriptsModule], controllers: [ChannelsController] })
export class ChannelsModule {}
