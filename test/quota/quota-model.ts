interface ModelReservation {
  month: string;
  /** Whether it is of a key with a limit. */
  limited: boolean;
  required: number;
  leasedUntilMs: number;
  state: 'open' | 'lapsed' | 'settled';
  charged: number;
}

export interface ThresholdEvent {
  threshold: number;
  used: number;
  limit: number;
  period: string;
}

/** The quota's rules on plain arrays, one call at a time: what the database must agree with. */
export class QuotaModel {
  /** The oldest month first. */
  readonly events: ThresholdEvent[] = [];
  private readonly reservations: ModelReservation[] = [];

  constructor(
    private nowMs: number,
    public limit: number,
    private readonly leaseSeconds: number,
    /** Of the key with a limit, and of those that it is rotated to. */
    private readonly keyLimit = 0,
  ) {}

  wait(seconds: number): void {
    this.nowMs += seconds * 1000;
  }

  /** Whether it is granted. */
  reserve(required: number, limited = false): boolean {
    this.lapse();
    const month = this.month();
    const granted = required <= this.room(month, limited);
    if (granted) {
      const leasedUntilMs = this.nowMs + this.leaseSeconds * 1000;
      this.reservations.push({ month, limited, required, leasedUntilMs, state: 'open', charged: 0 });
    }
    return granted;
  }

  settle(index: number, fetched: number): void {
    const reservation = this.reservations[index];
    if (reservation === undefined || reservation.state === 'settled') return;
    const { month, required } = reservation;
    let charged = Math.min(fetched, required);
    if (reservation.state === 'lapsed' || reservation.leasedUntilMs <= this.nowMs) {
      this.lapse();
      charged = Math.min(charged, Math.max(0, this.room(month, reservation.limited)));
    }
    reservation.charged = charged;
    reservation.state = 'settled';
    if (charged > 0 && this.limit > 0) this.announce(month);
  }

  counts(): { limit: number; used: number; reserved: number; remaining: number } {
    const [used, reserved] = [this.used(this.month()), this.reserved(this.month())];
    return { limit: this.limit, used, reserved, remaining: Math.max(0, this.limit - used - reserved) };
  }

  keyCounts(): { limit: number; used: number; reserved: number; remaining: number } {
    const month = this.month();
    const [used, reserved] = [this.used(month, true), this.reserved(month, true)];
    return { limit: this.keyLimit, used, reserved, remaining: Math.max(0, this.room(month, true)) };
  }

  private room(month: string, limited: boolean): number {
    const ofOrganization = this.limit - this.used(month) - this.reserved(month);
    if (!limited) return ofOrganization;
    return Math.min(ofOrganization, this.keyLimit - this.used(month, true) - this.reserved(month, true));
  }

  private announce(month: string): void {
    const used = this.used(month);
    for (const threshold of [80, 100]) {
      const known = this.events.some((event) => event.period === month && event.threshold === threshold);
      if (known || used * 100 < this.limit * threshold) continue;
      this.events.push({ threshold, used, limit: this.limit, period: month });
    }
    this.events.sort((one, other) => one.period.localeCompare(other.period) || one.threshold - other.threshold);
  }

  /** A lease that a decision has seen as expired stays expired, even if the clock is set back. */
  private lapse(): void {
    for (const reservation of this.reservations) {
      if (reservation.state === 'open' && reservation.leasedUntilMs <= this.nowMs) reservation.state = 'lapsed';
    }
  }

  private month(): string {
    return new Date(this.nowMs).toISOString().slice(0, 7);
  }

  private used(month: string, limitedOnly = false): number {
    return this.sum((of) =>
      of.month === month && of.state === 'settled' && (of.limited || !limitedOnly) ? of.charged : 0,
    );
  }

  private reserved(month: string, limitedOnly = false): number {
    return this.sum((of) => {
      const isOpen = of.month === month && of.state === 'open' && of.leasedUntilMs > this.nowMs;
      return isOpen && (of.limited || !limitedOnly) ? of.required : 0;
    });
  }

  private sum(count: (reservation: ModelReservation) => number): number {
    return this.reservations.reduce((total, reservation) => total + count(reservation), 0);
  }
}
