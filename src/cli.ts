import 'reflect-metadata';
import { runCommand } from './admin/cli/run-command.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';

process.exitCode = await runCommand(process.argv.slice(2), YoutubeModule);
