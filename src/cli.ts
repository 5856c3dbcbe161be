import 'reflect-metadata';
import { runCommand } from './admin/cli/run-command.js';

process.exitCode = await runCommand(process.argv.slice(2));
