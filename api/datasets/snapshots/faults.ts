/** What an operator has to mend among the published files and their records: for the log, /status and the metrics. */
import type { Log } from '../../process/log.ts'

/** Something that is wrong. */
export interface Fault {
  /** The file or folder, as a path in DATA_DIR. */
  readonly thing: string
  /** What is wrong with it, as words after its name; anybody may read them. */
  readonly message: string
}

/** What is told of an error to anybody. */
type Words = (error: unknown) => string

export interface Faults {
  /** What `read` gives; undefined when it throws, and then `thing` has a fault until `read` passes. */
  read<T>(thing: string, words: Words, read: () => T): T | undefined
  /** The present faults; each thing is looked at again. */
  list(): readonly Fault[]
}

/** What is told of a file that is left out, whatever its error is: the log has that. */
export const LEFT_OUT: Words = () => 'cannot be read and is left out'

/** Faults that go to `log` once each. */
export function createFaults(log: Log): Faults {
  const known = new Map<string, { readonly error: string; readonly lookAgain: () => Fault | undefined }>()

  function examine(thing: string, words: Words, read: () => void): Fault | undefined {
    try {
      read()
      known.delete(thing)
      return undefined
    } catch (error) {
      const message = words(error)
      // It may pass, so each look tries again. The same fault comes back then; once in the log is enough.
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
