/** A PostgreSQL of its own on a port of 127.0.0.1. */
export interface Server {
  /** Of the database `postgres`, with a user who may do everything. */
  readonly url: string;
  /** Runs one statement on a connection of its own. */
  query(text: string): Promise<void>;
  stop(): Promise<void>;
}

export function startServer(dataDir: string, settings: readonly string[]): Promise<Server>;
