/** How many messages of all connections together no guard has passed yet. */
export class PendingMessages {
  count = 0;
}

/** A message's place on its connection. Each of these is safe to call twice. */
export interface MessageSlot {
  /** The guards have let it pass: from here on the limits of calls in flight bound it. */
  passed(): void;
  /** It is answered, or nobody waits for it. */
  ended(): void;
}

/**
 * The messages of one connection. They are entries of a set, which go with the message, so that a connection holds
 * nothing of a message that has ended, however many it carries.
 */
export class ConnectionCalls {
  private readonly running = new Set<() => void>();
  private pending = 0;
  private closed = false;

  constructor(
    private readonly all: PendingMessages,
    /** Called whenever fewer are pending. */
    private readonly onRoom: () => void = () => undefined,
  ) {}

  /** Of this connection, how many no guard has passed yet. */
  get pendingCount(): number {
    return this.pending;
  }

  get isIdle(): boolean {
    return this.running.size === 0;
  }

  /** @param disconnect called when the connection closes while the message runs, at once when it has closed already */
  begin(disconnect: () => void): MessageSlot {
    const entry = (): void => disconnect();
    const passed = this.countPending();
    if (this.closed) disconnect();
    else this.running.add(entry);
    return {
      passed,
      ended: () => {
        this.running.delete(entry);
        passed();
      },
    };
  }

  /** Nobody waits for what still runs. */
  close(): void {
    this.closed = true;
    const entries = [...this.running];
    this.running.clear();
    for (const disconnect of entries) disconnect();
  }

  private countPending(): () => void {
    let counted = true;
    this.pending += 1;
    this.all.count += 1;
    return () => {
      if (!counted) return;
      counted = false;
      this.pending -= 1;
      this.all.count -= 1;
      this.onRoom();
    };
  }
}
