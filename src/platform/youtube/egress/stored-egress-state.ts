import {
  applyEgressEvent,
  INITIAL_EGRESS_STATE,
  type EgressEvent,
  type EgressState,
  type PauseState,
} from './egress-state.js';

/** The events that an outage of Redis leaves to be shared; counts of requests are merged, and further events dropped. */
const PENDING_MAX = 200;

/** The state of one use of an egress in this process, and the events that other replicas do not know yet. */
export class StoredEgressState {
  private state = INITIAL_EGRESS_STATE;
  private pending: EgressEvent[] = [];
  private onPauseAdopted: () => void = () => undefined;

  /** @param onEvent called after each event of this process */
  constructor(private readonly onEvent: (event: EgressEvent) => void = () => undefined) {}

  get current(): EgressState {
    return this.state;
  }

  get pause(): PauseState {
    return this.state.pause;
  }

  get hasPending(): boolean {
    return this.pending.length > 0;
  }

  record(event: EgressEvent): void {
    this.state = applyEgressEvent(this.state, event);
    this.remember(event);
    this.onEvent(event);
  }

  /** Removes the events to be shared. */
  takePending(): EgressEvent[] {
    return this.pending.splice(0);
  }

  /** Returns events that could not be shared. */
  restorePending(events: readonly EgressEvent[]): void {
    this.pending.unshift(...events);
  }

  /** Replaces the state by the shared one, which includes everything but the pending events. */
  adopt(shared: EgressState): void {
    const wasOpen = this.pause.openedAtMs !== null;
    this.state = this.pending.reduce(applyEgressEvent, shared);
    if ((this.pause.openedAtMs !== null) !== wasOpen) this.onPauseAdopted();
  }

  /** @param listener called when a pause begins or ends that another replica reported */
  whenPauseAdopted(listener: () => void): void {
    this.onPauseAdopted = listener;
  }

  private remember(event: EgressEvent): void {
    if (event.kind === 'sent' || event.kind === 'answered') {
      // Counts are merged back to the last change of the pause, whose position among them matters.
      for (let index = this.pending.length - 1; index >= 0; index--) {
        const earlier = this.pending[index];
        if (earlier?.kind !== 'sent' && earlier?.kind !== 'answered') break;
        if (earlier.kind !== event.kind || earlier.paced !== event.paced) continue;
        this.pending[index] = { ...event, count: earlier.count + event.count };
        return;
      }
    }
    if (this.pending.length < PENDING_MAX) this.pending.push(event);
  }
}
