/** What callers who are not known yet can make the service hold and do. Constants: no operator has to choose. */
export interface MessageLimits {
  /** Of one message. What the fields can hold comes to less than 10 KB. */
  messageBytesMax: number;
  /** From the first byte of a message to its last. */
  messageMs: number;
  /** Without a message under way. Nest's client connects again with its next message. */
  idleMs: number;
  /** How long a reader may take nothing of what waits for it. */
  stalledReaderMs: number;
  connectionsMax: number;
  connectionsPerAddressMax: number;
  /** Of unfinished messages, over all connections. */
  incomingBytesMax: number;
  /** Of what waits for one reader. A call waits for its reader, so that only many calls at once come to this. */
  waitingBytesMax: number;
  /** Of messages that no guard has passed yet. */
  pendingPerConnectionMax: number;
  pendingMax: number;
  /** How often the times are looked at. */
  checkMs: number;
}

export const MESSAGE_LIMITS: MessageLimits = {
  messageBytesMax: 64 * 1024,
  messageMs: 15_000,
  idleMs: 10 * 60_000,
  stalledReaderMs: 30_000,
  connectionsMax: 1_024,
  connectionsPerAddressMax: 256,
  incomingBytesMax: 16 * 1024 * 1024,
  waitingBytesMax: 32 * 1024 * 1024,
  pendingPerConnectionMax: 64,
  pendingMax: 1_000,
  checkMs: 1_000,
};
