/** The longest that a key can be issued for. */
export const DAYS_MAX = 36_500;
/** The longest that a key can live on after it was rotated. */
export const GRACE_HOURS_MAX = 24 * 365;
/** How long a rotated key lives on when nothing else is said. */
export const GRACE_HOURS_DEFAULT = 24;
