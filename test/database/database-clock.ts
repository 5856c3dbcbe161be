/** The clock of a database, which a test moves or stops. It starts with the real time. */
export class DatabaseClock {
  private base = 'clock_timestamp()';
  private seconds = 0;

  /** @param query runs a statement on the database */
  constructor(private readonly query: (statement: string) => Promise<unknown>) {}

  async move(seconds: number): Promise<void> {
    this.seconds += seconds;
    await this.replace();
  }

  /** Stops it at a time; it can still be moved. */
  async stop(at = new Date()): Promise<void> {
    this.base = `timestamptz ''${at.toISOString()}''`;
    this.seconds = 0;
    await this.replace();
  }

  /** Sets it to the real time. */
  async reset(): Promise<void> {
    this.base = 'clock_timestamp()';
    this.seconds = 0;
    await this.replace();
  }

  private async replace(): Promise<void> {
    await this.query(`CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      'SELECT ${this.base} + make_interval(secs => ${this.seconds})'`);
  }
}
