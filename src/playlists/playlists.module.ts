import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { PlaylistsController } from './playlists.controller.js';

@Module({ imports: [AuthModule, TranscriptsModule], controllers: [PlaylistsController] })
export class PlaylistsModule {}
