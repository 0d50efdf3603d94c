/** The store for requests: they get a 503 if it fails or is slow, however long other users wait for it. */
import { ApiError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import { REQUEST_WAIT_MS, type Queries, type Store } from './store.ts'

const RETRY_AFTER_SECONDS = 2

/** What most requests need of it. */
export type RequestStore = Pick<Queries, 'query'>

/** Bounds every wait for `store`; a failure is logged once until the store answers again. */
export function createRequestStore(store: Store, log: Log) {
  let isFailing = false
  /** Bounds the wait for further work on the store. */
  async function bounded<Result>(pending: Promise<Result>): Promise<Result> {
    const { promise: tooLate, reject } = Promise.withResolvers<never>()
    // A setTimeout, since aborting timers/promises costs more than the query.
    const timer = setTimeout(
      () => reject(new Error(`The store has not answered for ${REQUEST_WAIT_MS} ms`)),
      REQUEST_WAIT_MS,
    )
    try {
      const result = await Promise.race([pending, tooLate])
      if (isFailing) log.info('the store answers again')
      isFailing = false
      return result
    } catch (error) {
      // The work of a transaction may reject the request itself.
      if (error instanceof ApiError) throw error
      if (!isFailing) log.error({ err: error }, 'the store does not answer; requests that need it get 503')
      isFailing = true
      throw unavailable()
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    ...store,
    bounded,
    query: (...statement: Parameters<Store['query']>) => bounded(store.query(...statement)),
    transaction: <Result>(work: (queries: Queries) => Promise<Result>) => bounded(store.transaction(work)),
  }
}

/** Questions that are answered together at most: each number of them is a statement of its own. */
const TOGETHER_AT_MOST = 64

/**
 * Collects the questions of one turn of the event loop, since a statement costs the same for one row and for many.
 * @param answerAll answers them; the result returns each question's answer, and is called in the order of the questions.
 */
export function collectTurn<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<(question: Question) => Answer>,
): (question: Question) => Promise<Answer> {
  let turn: { readonly questions: Question[]; readonly answered: ReturnType<typeof answerAll> } | undefined

  function begin(): NonNullable<typeof turn> {
    const questions: Question[] = []
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    setImmediate(end)
    const answered = ended.then(() => {
      if (turn?.questions === questions) turn = undefined
      return answerAll(questions)
    })
    return { questions, answered }
  }

  return async (question) => {
    if (turn === undefined || turn.questions.length === TOGETHER_AT_MOST) turn = begin()
    turn.questions.push(question)
    return (await turn.answered)(question)
  }
}

function unavailable(): ApiError {
  return new ApiError(
    503,
    `Keys, limits and groups are temporarily unavailable; try again in ${RETRY_AFTER_SECONDS} seconds`,
    { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } },
  )
}
