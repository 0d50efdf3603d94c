/** Runs pieces of work one after another, in the order in which they were handed in. */
export type SerialQueue = <Result>(work: () => Promise<Result>) => Promise<Result>

/** A queue of its own; a piece that fails does not hold up the next. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}
