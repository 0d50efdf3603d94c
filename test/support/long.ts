/** The limit, in ms, of a test or hook that takes more than five seconds on an idle machine; the others have a minute. */
export const LONG = 600_000
