import type { Command } from 'commander';
import type { AdminServices } from './admin-services.js';

/** What a command has to say, for programs and for people. */
export interface CommandResult {
  /** Printed as it is, as JSON, with `--json`. */
  document: unknown;
  text: string;
}

export type Work = (services: AdminServices) => Promise<CommandResult>;

/** Opens the services, does a command's work and prints its answer in the form asked for. */
export async function printResult(command: Command, work: Work): Promise<void> {
  // Loaded only now, so that help and wrong arguments are answered without the framework and the database's driver.
  const { withAdminServices } = await import('./admin-services.js');
  await withAdminServices(async (services) => {
    const { document, text } = await work(services);
    const json = command.optsWithGlobals<{ json?: boolean }>().json === true;
    process.stdout.write(`${json ? JSON.stringify(document) : text}\n`);
  });
}
