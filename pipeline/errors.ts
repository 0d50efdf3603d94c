/**
 * Why a command of the pipeline fails, one class each; the exit codes are those of CONTRACT 9.
 * Anything else that is thrown is a crash (exit 2, with its stack).
 */
import { ProgramError, UsageError } from './contract/program.ts'
import { NO_RIGHT, NO_SPACE, READ_ONLY, REFUSALS, findRefusal, type Refusal } from './contract/refusals.ts'

/** The data cannot be published: nothing was, yesterday's snapshot stays. Exit 1. */
export class DataError extends ProgramError {
  override readonly name = 'DataError'
  readonly exitCode = 1
}

/** The figures are out of the usual: nothing was published until they are let through by name. Exit 1. */
export class BlockedError extends ProgramError {
  override readonly name = 'BlockedError'
  readonly exitCode = 1
}

/** Exit code of a program that met a held lock, EX_TEMPFAIL (CONTRACT 9). */
export const EXIT_LOCKED = 75

/** Another process holds what is needed, the warehouse or a published file for instance; try again later. */
export class LockedError extends ProgramError {
  override readonly name = 'LockedError'
  readonly exitCode = EXIT_LOCKED
}

/** Another process holds the warehouse, so this run has not even begun. */
export class LockedOutError extends LockedError {}

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

const NO_MEMORY: Refusal = {
  words: /^Out of Memory Error/,
  remedy: 'The run takes more memory than PIPELINE_MEMORY gives it; raise that and run again',
}

/** What DuckDB may refuse a run, beside what every program meets. */
const RUN_REFUSALS: readonly Refusal[] = [
  {
    words: /max_temp_directory_size/,
    remedy:
      'What does not fit into PIPELINE_MEMORY takes more disk than is free, or than PIPELINE_SPILL allows; raise one of them and run again',
  },
  NO_MEMORY,
  ...REFUSALS,
  {
    words:
      /Corrupt database file|not a valid DuckDB database|database has been invalidated|[Ss]erialization Error|WAL file/,
    remedy: 'The warehouse is damaged; npm run nightly -- rebuild makes it anew from raw/',
  },
]

/** DuckDB has no error code for a held lock, only this sentence; it names the process where the system does. */
const LOCK_HELD = /Could not set lock on file/
const LOCK_HOLDER = /Conflicting lock is held in (.*?) \(PID (\d+)\)(?: by user ([^\s.]+))?/

/** Who holds the lock on a DuckDB file that could not be opened for it, at the begin of a sentence; undefined for any other error. */
export function lockHolder(error: unknown): string | undefined {
  const message = messageOf(error)
  if (!LOCK_HELD.test(message)) return undefined
  const [, program, pid, user] = LOCK_HOLDER.exec(message) ?? []
  if (pid === undefined) return 'Another process'
  return `Process ${pid} (${user === undefined ? program : `${program}, user ${user}`})`
}

/** Whether memory or disk ran out, whatever was read meanwhile. */
export function isShortage(error: unknown): boolean {
  return findRefusal(messageOf(error), [NO_MEMORY, NO_SPACE]) !== undefined
}

/** Whether the file was not to be opened so, which says nothing of what is in it. */
export function isForbidden(error: unknown): boolean {
  return findRefusal(messageOf(error), [READ_ONLY, NO_RIGHT]) !== undefined
}

/** The sentence for a fault of memory, disk, rights or warehouse under `folder`; undefined for any other error. */
export function machineFault(error: unknown, folder: string): DataError | undefined {
  if (error instanceof UsageError || error instanceof LockedError) return undefined
  const refusal = findRefusal(messageOf(error), RUN_REFUSALS)
  return refusal && new DataError(`${refusal.remedy} (${folder}): ${firstLineOf(error)}`, { cause: error })
}

/** An error as it is told: a fault of the machine under `folder` in its sentence, any other as it is. */
export function explained(error: unknown, folder: string): unknown {
  return error instanceof ProgramError ? error : (machineFault(error, folder) ?? error)
}
