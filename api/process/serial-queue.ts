/** Runs tasks one after another, in the order of their calls. */
export type SerialQueue = <Result>(work: () => Promise<Result>) => Promise<Result>

/** A new queue; a failing task does not block the next. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}
