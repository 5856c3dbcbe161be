import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CommandLogger } from './admin/cli/command-logger.js';
import type { RunLocally } from './admin/cli/transcripts-command.js';
import { CacheModule } from './cache/cache.module.js';
import { ConfigModule } from './config/config.module.js';
import { readEnvironment, type Environment } from './config/environment.js';
import { VideoPlatform } from './platform/video-platform.js';
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
export const withLocalTranscripts: RunLocally = async (work, { handlesSignals } = { handlesSignals: false }) => {
  const environment = readEnvironment();
  const context = await NestFactory.createApplicationContext(LocalTranscriptsModule.with(environment), {
    logger: new CommandLogger(environment.LOG_LEVEL),
    abortOnError: false,
  });
  if (!handlesSignals) context.enableShutdownHooks();
  try {
    await work({
      platform: context.get(VideoPlatform, { strict: false }),
      uploads: context.get(ChannelUploads),
      playlists: context.get(PlaylistSource),
      transcripts: context.get(TranscriptsService),
      deadlineSeconds: environment.REQUEST_DEADLINE_SECONDS,
    });
  } finally {
    await context.close();
  }
};
