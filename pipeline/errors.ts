/**
 * The decisions a failed run leaves to its caller, one class each; the exit codes are those of CONTRACT 9.
 * Anything else that is thrown is a crash (exit 2, with its stack).
 */

/** The data broke a promise: nothing was published, yesterday's snapshot stays. Exit 1. */
export class DataError extends Error {
  override readonly name = 'DataError'
  readonly exitCode = 1
}

/** The figures are out of the usual: nothing was published until they are let through by name. Exit 1. */
export class BlockedError extends Error {
  override readonly name = 'BlockedError'
  readonly exitCode = 1
}

/** The command or a setting is wrong; the message names the remedy. Exit 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly exitCode = 2
}

/** Another run holds the warehouse; try again later. Exit 75 (EX_TEMPFAIL). */
export class LockedError extends Error {
  override readonly name = 'LockedError'
  readonly exitCode = 75
}

/** The errors whose message alone tells the operator what to do. */
export type ExpectedError = DataError | BlockedError | UsageError | LockedError

export function isExpected(error: unknown): error is ExpectedError {
  return [DataError, BlockedError, UsageError, LockedError].some((kind) => error instanceof kind)
}

/** The text of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The first line of the text; DuckDB's messages go on with hints for whoever wrote the SQL. */
export function firstLineOf(error: unknown): string {
  return messageOf(error).split('\n', 1).join('')
}

/** The text of a crash, with its stack. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
