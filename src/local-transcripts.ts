import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandLogger } from './admin/cli/command-logger.js';
import type { LocalTranscripts } from './admin/cli/print-transcripts.js';
import { CacheModule } from './cache/cache.module.js';
import { ConfigModule } from './config/config.module.js';
import { readEnvironment, type Environment } from './config/environment.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';
import { ChannelUploads } from './transcripts/sources/channel-uploads.js';
import { PlaylistSource } from './transcripts/sources/playlist-source.js';
import { UnmeteredTranscriptsModule } from './transcripts/transcripts.module.js';
import { TranscriptsService } from './transcripts/transcripts.service.js';

/** The part of the application that reads transcripts. It needs no key, quota or database, and nothing listens. */
@Module({})
class LocalTranscriptsModule {
  static with(environment: Environment): DynamicModule {
    return {
      module: LocalTranscriptsModule,
      imports: [
        ConfigModule.forRoot(environment),
        CacheModule.forRoot(environment),
        { module: YoutubeModule, global: true },
        UnmeteredTranscriptsModule,
      ],
    };
  }
}

/**
 * Opens the services, runs the work and closes the services, also when the work fails.
 *
 * @throws EnvironmentError, and the errors of the work
 */
export async function withLocalTranscripts(work: (services: LocalTranscripts) => Promise<void>): Promise<void> {
  const environment = readEnvironment();
  const context = await NestFactory.createApplicationContext(LocalTranscriptsModule.with(environment), {
    logger: new CommandLogger(environment.LOG_LEVEL),
    abortOnError: false,
  });
  context.enableShutdownHooks();
  try {
    await work({
      uploads: context.get(ChannelUploads),
      playlists: context.get(PlaylistSource),
      transcripts: context.get(TranscriptsService),
    });
  } finally {
    await context.close();
  }
}
