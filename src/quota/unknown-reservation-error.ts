/** A settlement names a reservation that was never made: a bug of the caller, which no retry mends. */
export class UnknownReservationError extends Error {
  constructor(reservationId: string) {
    super(`There is no reservation ${reservationId}.`);
    this.name = 'UnknownReservationError';
  }
}
