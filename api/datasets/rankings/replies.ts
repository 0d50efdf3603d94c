/**
 * Ready replies of the rankings call: bytes per snapshot, query, format and encoding, worked out once however many
 * ask at the same time, and kept as long as there is room.
 */
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { encode, encodedTag, ENCODINGS, type Encoding } from '../../http/protocol/encodings.ts'
import { headLines, type HeadLines } from '../../http/ready-head.ts'
import { createByteCache } from './byte-cache.ts'
import { encodeRankings } from '../formats/encode.ts'
import { FORMATS } from '../formats/formats.ts'
import { linkField, type Place } from './links.ts'
import { resolveQuery } from './query.ts'
import { readRanking } from './read-ranking.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'

/** A question to a snapshot that is open. */
interface Question extends Place {
  readonly snapshot: Snapshot
}

/** One of the codings of an answer. */
export interface Representation {
  readonly encoding: Encoding
  /** The entity tag, which tells it from all others: from those of other snapshots, queries, formats and codings. */
  readonly etag: string
}

/** An answer that stands ready. */
export interface ReadyAnswer {
  /** Its bytes, one character for each (latin1). */
  readonly body: string
  /** The headers that go with it, but for its length. */
  readonly lines: HeadLines
}

export interface Answers {
  /** The answer to a query, at once where it stands ready; the snapshot must stay open meanwhile. */
  get(question: Question, representation: Representation): ReadyAnswer | Promise<ReadyAnswer>
  /** Works out what is asked first and most. */
  warm(snapshot: Snapshot): Promise<void>
}

/** Bytes that all kept answers may have together. */
const KEPT_BYTES = 64 * 1024 * 1024

/** The answers of this process. */
export function createAnswers(): Answers {
  const { keep } = createByteCache<ReadyAnswer>(KEPT_BYTES)

  function get(question: Question, { encoding, etag }: Representation): ReadyAnswer | Promise<ReadyAnswer> {
    return keep(etag, async () => {
      if (encoding === 'identity') return await workOut(question)
      const { body, lines } = await get(question, representationOf(question, 'identity'))
      const encoded = await encode(Buffer.from(body, 'latin1'), encoding)
      return { body: encoded.toString('latin1'), lines }
    })
  }

  return {
    get,
    async warm(snapshot) {
      for (const sort of SORTS) {
        const query = resolveQuery({ sort }, snapshot.dataThrough)
        const question = { snapshot, query, format: 'json' } as const
        for (const encoding of ENCODINGS) await get(question, representationOf(question, encoding))
      }
    },
  }
}

/** The answer to what is asked at this place, in this coding. */
export function representationOf(place: Place, encoding: Encoding): Representation {
  return { encoding, etag: encodedTag(keyOf(place), encoding) }
}

/** What tells answers apart: every part is one of a closed set, a date or a number. */
function keyOf({ snapshot, query, format }: Place): string {
  const { sort, category, subcategory, start, end, limit, offset } = query
  return [snapshot.id, sort, subcategory ?? category ?? 'all', start, end, limit, offset, format].join('.')
}

/**
 * What the head says of an answer beside its length and coding.
 * @param rows how many rows it has; undefined where that is not known (HEAD).
 */
export function linesOf(place: Place, rows: number | undefined): HeadLines {
  return headLines({ Link: linkField(place, rows), 'Content-Type': FORMATS[place.format].contentType })
}

async function workOut(question: Question): Promise<ReadyAnswer> {
  const rows = await readRanking(question.snapshot, question.query)
  const bytes = await encodeRankings(question, rows)
  return { body: bytes.toString('latin1'), lines: linesOf(question, rows.length) }
}
