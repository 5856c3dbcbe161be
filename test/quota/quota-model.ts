interface ModelReservation {
  month: string;
  required: number;
  leasedUntilMs: number;
  state: 'open' | 'lapsed' | 'settled';
  charged: number;
}

/** The quota's rules on plain arrays, one call at a time: what the database must agree with. */
export class QuotaModel {
  private readonly reservations: ModelReservation[] = [];

  constructor(
    private nowMs: number,
    public limit: number,
    private readonly leaseSeconds: number,
  ) {}

  wait(seconds: number): void {
    this.nowMs += seconds * 1000;
  }

  /** Whether it is granted. */
  reserve(required: number): boolean {
    this.lapse();
    const month = this.month();
    const granted = this.used(month) + this.reserved(month) + required <= this.limit;
    if (granted) {
      const leasedUntilMs = this.nowMs + this.leaseSeconds * 1000;
      this.reservations.push({ month, required, leasedUntilMs, state: 'open', charged: 0 });
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
      charged = Math.min(charged, Math.max(0, this.limit - this.used(month) - this.reserved(month)));
    }
    reservation.charged = charged;
    reservation.state = 'settled';
  }

  counts(): { limit: number; used: number; reserved: number; remaining: number } {
    const [used, reserved] = [this.used(this.month()), this.reserved(this.month())];
    return { limit: this.limit, used, reserved, remaining: Math.max(0, this.limit - used - reserved) };
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

  private used(month: string): number {
    return this.sum((of) => (of.month === month && of.state === 'settled' ? of.charged : 0));
  }

  private reserved(month: string): number {
    return this.sum((of) =>
      of.month === month && of.state === 'open' && of.leasedUntilMs > this.nowMs ? of.required : 0,
    );
  }

  private sum(count: (reservation: ModelReservation) => number): number {
    return this.reservations.reduce((total, reservation) => total + count(reservation), 0);
  }
}
