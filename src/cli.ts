import 'reflect-metadata';
import { runCommand } from './admin/cli/run-command.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';

process.exitCode = await runCommand(process.argv.slice(2), YoutubeModule, async (environment, logger) => {
  // Imported on demand, because most commands need no service.
  const { createApp } = await import('./bootstrap.js');
  return createApp(environment, logger, undefined, 'command');
});
