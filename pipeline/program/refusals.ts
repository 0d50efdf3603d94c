/** Machine faults with their remedies, recognised by the messages of Node, DuckDB and SQLite. */

export type Refusal = {
  readonly words: RegExp
  /** A sentence without its full stop, printed before the original message. */
  readonly remedy: string
}

const NO_SPACE: Refusal = {
  words: /no space left on device|disk quota exceeded|disk (?:is )?full/i,
  remedy: 'There is no space left; free some and run again',
}
const READ_ONLY: Refusal = {
  words: /read-only file system/i,
  remedy: 'The file system is read-only; mount it so that it can be written, and run again',
}
const NO_RIGHT: Refusal = {
  words: /permission denied|operation not permitted|attempt to write a readonly database/i,
  remedy: 'A right is missing; give it to the user of the run, and run again',
}
const TOO_MANY_FILES: Refusal = {
  words: /too many open files|file table overflow/i,
  remedy: 'Too few files may be open at a time; raise the limit, such as ulimit -n 1024, and run again',
}

/** Faults that every program may meet. */
const REFUSALS: readonly Refusal[] = [NO_SPACE, READ_ONLY, NO_RIGHT, TOO_MANY_FILES]

/** Further faults of a command's store. */
export const COMMAND_REFUSALS: readonly Refusal[] = [
  ...REFUSALS,
  {
    words: /database (?:table )?is locked/,
    remedy: 'Another process is writing to the store; try again later',
  },
  {
    words: /disk I\/O error|^EIO\b|Input\/output error/,
    remedy: 'The disk cannot be read or written; see the system log',
  },
]

/** The fault in an error text. */
export function findRefusal(text: string, refusals: readonly Refusal[]): Refusal | undefined {
  return refusals.find(({ words }) => words.test(text))
}
