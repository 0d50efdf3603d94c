/** The error classes of the pipeline's commands, with the exit codes of CONTRACT 9. Any other error is a crash (exit 2). */
import { ProgramError } from './program/program.ts'

/** The data cannot be published; the previous snapshot stays. Exit 1. */
export class DataError extends ProgramError {
  readonly exitCode = 1
}

/** The figures are unusual; nothing is published until an operator accepts them by the gate's name. Exit 1. */
export class BlockedError extends ProgramError {
  readonly exitCode = 1
}

/** Exit code for a held lock, EX_TEMPFAIL (CONTRACT 9). */
export const EXIT_LOCKED = 75

/** Another process holds a lock, on the warehouse or a published file for instance; try again later. */
export class LockedError extends ProgramError {
  readonly exitCode = EXIT_LOCKED
}

/** Another process holds the warehouse, so the run has not begun. */
export class LockedOutError extends LockedError {}

/** The text of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * The first line of the text, without its full stop: a sentence goes on behind it. DuckDB's further lines are hints for the
 * author of the SQL.
 */
export function firstLineOf(error: unknown): string {
  return messageOf(error).split('\n', 1).join('').replace(/[.!]$/, '')
}

/** What DuckDB says of a held lock, with the process that holds it; undefined for any other error. It has no error code. */
export function heldLock(error: unknown): string | undefined {
  return /Could not set lock on file [^\n]*?(?=\. See also|$)/m.exec(messageOf(error))?.[0]
}

/** Whether memory or disk ran out: that is no fault of the file in hand. */
export function isShortage(error: unknown): boolean {
  return /^Out of Memory Error|no space left on device|max_temp_directory_size/i.test(messageOf(error))
}
