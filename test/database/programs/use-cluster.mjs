// Opens the embedded PostgreSQL of a directory, prints its URL as a line of JSON, and closes it when standard input ends.
import { EmbeddedPostgres } from '../../../dist/modules/database/embedded/embedded-postgres.js';

const [dataDir, as] = process.argv.slice(2);
try {
  const postgres = await EmbeddedPostgres.open(dataDir, as);
  process.stdout.write(`${JSON.stringify({ url: postgres.url })}\n`);
  process.stdin.resume().once('end', () => void postgres.close());
} catch (error) {
  process.stderr.write(`${error.name}: ${error.message}\n`);
  process.exit(1);
}
