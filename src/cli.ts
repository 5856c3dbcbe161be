import 'reflect-metadata';
import { runCommand } from './admin/cli/run-command.js';
import { createApp } from './bootstrap.js';

process.exitCode = await runCommand(process.argv.slice(2), (environment, logger) =>
  createApp(environment, logger, undefined, 'command'),
);
