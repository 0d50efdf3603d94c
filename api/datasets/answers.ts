/**
 * Ready replies of the rankings call: bytes per snapshot, query, format and encoding, worked out once however many
 * ask at the same time, and kept as long as there is room.
 */
import { SORTS } from '../../pipeline/contract.ts'
import { encode, ENCODINGS, type Encoding } from '../http/encodings.ts'
import { createByteCache } from './byte-cache.ts'
import { encodeRankings } from './encode.ts'
import { linkField, type Place } from './links.ts'
import { resolveQuery } from './query.ts'
import { readRanking } from './read-ranking.ts'
import type { Snapshot } from './snapshot.ts'

/** A question to a snapshot that is open. */
interface Question extends Place {
  readonly snapshot: Snapshot
}

interface ReadyAnswer {
  readonly body: Buffer
  /** The `Link` field that goes with it. */
  readonly link: string
}

export interface Answers {
  /** The answer to a query; the snapshot must stay open meanwhile. */
  get(question: Question, encoding: Encoding): Promise<ReadyAnswer>
  /** Works out what is asked first and most. */
  warm(snapshot: Snapshot): Promise<void>
}

/** Bytes that all kept answers may have together. */
const KEPT_BYTES = 64 * 1024 * 1024

/** The answers of this process. */
export function createAnswers(): Answers {
  const { keep } = createByteCache<ReadyAnswer>(KEPT_BYTES)

  async function get(question: Question, encoding: Encoding): Promise<ReadyAnswer> {
    const key = keyOf(question)
    const plain = () => keep(key, () => workOut(question))
    if (encoding === 'identity') return await plain()
    return await keep(`${key}.${encoding}`, async () => {
      const { body, link } = await plain()
      return { body: await encode(body, encoding), link }
    })
  }

  return {
    get,
    async warm(snapshot) {
      for (const sort of SORTS) {
        const query = resolveQuery({ sort }, snapshot.dataThrough)
        for (const encoding of ENCODINGS) await get({ snapshot, query, format: 'json' }, encoding)
      }
    },
  }
}

/** What tells answers apart: every part is one of a closed set, a date or a number. */
export function keyOf({ snapshot, query, format }: Place): string {
  const { sort, category, subcategory, start, end, limit, offset } = query
  return [snapshot.id, sort, subcategory ?? category ?? 'all', start, end, limit, offset, format].join('.')
}

async function workOut(question: Question): Promise<ReadyAnswer> {
  const rows = await readRanking(question.snapshot, question.query)
  return { body: await encodeRankings(question, rows), link: linkField(question, rows.length) }
}
