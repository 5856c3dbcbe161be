/** The embedded PostgreSQL cannot be used; the message is one line for the operator. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

/** The line that contains the reason of a failure, in the output of a PostgreSQL program or the message of an error. */
export function faultLine(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  // The first fatal error causes the others.
  const fault = lines.find((line) => /\b(FATAL|PANIC):/.test(line)) ?? lines.find((line) => !/\bLOG:/.test(line));
  return (fault ?? 'no output').replace(/^.*?\b(?:FATAL|PANIC|initdb: error|postgres):\s*/, '').trim();
}
