/**
 * The error classes of the pipeline's commands, with the exit codes of CONTRACT 9. Any other error is a crash (exit 2, with its
 * stack).
 */
import { ProgramError, UsageError } from './program/program.ts'
import { NO_RIGHT, NO_SPACE, READ_ONLY, REFUSALS, findRefusal, type Refusal } from './program/refusals.ts'

/** The data cannot be published; the previous snapshot stays. Exit 1. */
export class DataError extends ProgramError {
  override readonly name = 'DataError'
  readonly exitCode = 1
}

/** The figures are unusual; nothing is published until an operator accepts them by the gate's name. Exit 1. */
export class BlockedError extends ProgramError {
  override readonly name = 'BlockedError'
  readonly exitCode = 1
}

/** Exit code for a held lock, EX_TEMPFAIL (CONTRACT 9). */
export const EXIT_LOCKED = 75

/** Another process holds a lock, on the warehouse or a published file for instance; try again later. */
export class LockedError extends ProgramError {
  override readonly name = 'LockedError'
  readonly exitCode = EXIT_LOCKED
}

/** Another process holds the warehouse, so the run has not begun. */
export class LockedOutError extends LockedError {}

/** The text of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The first line of the text; DuckDB's further lines are hints for the author of the SQL. */
export function firstLineOf(error: unknown): string {
  return messageOf(error).split('\n', 1).join('')
}

/** The text of a crash, with its stack. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const NO_MEMORY: Refusal = {
  words: /^Out of Memory Error/,
  remedy: 'The run takes more memory than PIPELINE_MEMORY gives it; raise that and run again',
}

/** Faults of DuckDB, beside the faults that every program meets. */
const RUN_REFUSALS: readonly Refusal[] = [
  {
    words: /max_temp_directory_size/,
    remedy:
      'The run spills more than the free disk space or PIPELINE_SPILL; raise PIPELINE_MEMORY or PIPELINE_SPILL and run again',
  },
  NO_MEMORY,
  ...REFUSALS,
  {
    words:
      /Corrupt database file|not a valid DuckDB database|database has been invalidated|[Ss]erialization Error|WAL file/,
    remedy: 'The warehouse is damaged; npm run nightly -- rebuild rebuilds it from raw/',
  },
]

/** DuckDB has no error code for a held lock, only this message; it names the process if the system does. */
const LOCK_HELD = /Could not set lock on file/
const LOCK_HOLDER = /Conflicting lock is held in (.*?) \(PID (\d+)\)(?: by user ([^\s.]+))?/

/** The holder of the lock on a DuckDB file, as the beginning of a sentence; undefined for any other error. */
export function lockHolder(error: unknown): string | undefined {
  const message = messageOf(error)
  if (!LOCK_HELD.test(message)) return undefined
  const [, program, pid, user] = LOCK_HOLDER.exec(message) ?? []
  if (pid === undefined) return 'Another process'
  return `Process ${pid} (${user === undefined ? program : `${program}, user ${user}`})`
}

/** Whether memory or disk ran out. */
export function isShortage(error: unknown): boolean {
  return findRefusal(messageOf(error), [NO_MEMORY, NO_SPACE]) !== undefined
}

/** Whether the file could not be opened, whatever its contents. */
export function isForbidden(error: unknown): boolean {
  return findRefusal(messageOf(error), [READ_ONLY, NO_RIGHT]) !== undefined
}

/** The message for a fault of memory, disk, rights or warehouse under `folder`; undefined for any other error. */
export function machineFault(error: unknown, folder: string): DataError | undefined {
  if (error instanceof UsageError || error instanceof LockedError) return undefined
  const refusal = findRefusal(messageOf(error), RUN_REFUSALS)
  return refusal && new DataError(`${refusal.remedy} (${folder}): ${firstLineOf(error)}`, { cause: error })
}

/** Translates a machine fault under `folder` into its message; any other error is returned unchanged. */
export function explained(error: unknown, folder: string): unknown {
  return error instanceof ProgramError ? error : (machineFault(error, folder) ?? error)
}
