/** Faults of published files and records that an operator has to fix: for the log, /status and the metrics. */
import type { Log } from '../../process/log.ts'

export interface Fault {
  /** The file or folder, as a path in DATA_DIR. */
  readonly thing: string
  /** The fault, as words after the name; public. */
  readonly message: string
}

/** The public description of an error. */
type Words = (error: unknown) => string

export interface Faults {
  /** The result of `read`; undefined if it throws, and then `thing` has a fault until `read` succeeds. */
  read<T>(thing: string, words: Words, read: () => T): T | undefined
  /** The present faults; each thing is checked again. */
  list(): readonly Fault[]
}

/** The public description of a left-out file; the log has the error. */
export const LEFT_OUT: Words = () => 'cannot be read and is left out'

/** Faults that are logged once each. */
export function createFaults(log: Log): Faults {
  const known = new Map<string, { readonly error: string; readonly lookAgain: () => Fault | undefined }>()

  function examine(thing: string, words: Words, read: () => void): Fault | undefined {
    try {
      read()
      known.delete(thing)
      return undefined
    } catch (error) {
      const message = words(error)
      // Each look tries again, since the fault may pass; it is logged once.
      if (known.get(thing)?.error !== String(error)) log.error({ thing, err: error }, `${thing} ${message}`)
      known.set(thing, { error: String(error), lookAgain: () => examine(thing, words, read) })
      return { thing, message }
    }
  }

  return {
    read<T>(thing: string, words: Words, read: () => T): T | undefined {
      let result: T | undefined
      examine(thing, words, () => {
        result = read()
      })
      return result
    },
    list: () => [...known.values()].flatMap(({ lookAgain }) => lookAgain() ?? []),
  }
}
