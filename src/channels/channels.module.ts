import { Module } from '@nestjs/common';
import { AccessModule } from '../auth/auth.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { ChannelsController } from './channels.controller.js';

@Module({ imports: [AccessModule, TranscriptsModule], controllers: [ChannelsController] })
export class ChannelsModule {}
