/** For a test that takes more than five seconds on an idle machine, and as a hook's `LONG.timeout`; others have a minute. */
export const LONG = { timeout: 600_000 }
