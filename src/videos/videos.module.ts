import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { VideosController } from './videos.controller.js';

@Module({ imports: [AuthModule, TranscriptsModule], controllers: [VideosController] })
export class VideosModule {}
