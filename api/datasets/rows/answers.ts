/**
 * Bodies of answers: bytes per snapshot, question, format and coding, worked out once however many ask at the same time,
 * and kept as long as there is room.
 */
import { DATASET_VERSION, LICENCE, type RankingMeta } from '../../../pipeline/contract/dataset.ts'
import { encode, ENCODINGS } from '../../http/protocol/encodings.ts'
import type { Headers } from '../../http/call.ts'
import { createByteCache } from '../../process/byte-cache.ts'
import { encodeDocument } from '../formats/encode.ts'
import { FORMATS } from '../formats/formats.ts'
import type { Table } from '../formats/table.ts'
import type { ReadableSnapshot, Snapshot } from '../snapshots/open-snapshot.ts'
import { linkField } from './links.ts'
import type { Place, Question } from './question.ts'
import { representationOf, type Representation } from './representation.ts'

/** A representation in a snapshot that is open. */
interface Asked extends Representation {
  readonly snapshot: ReadableSnapshot
}

/** The bytes of a representation. */
interface Answer {
  readonly body: Buffer
  /** The headers that depend on the rows and the bytes. */
  readonly headers: Headers
}

export interface Answers {
  /** The answer to a question; its snapshot must stay open meanwhile. */
  get(asked: Asked): Promise<Answer>
  /** Works out questions before anybody asks them. */
  warm(snapshot: Snapshot, questions: readonly Question[]): Promise<void>
}

/** Bytes that all kept answers may have together. */
const KEPT_BYTES = 64 * 1024 * 1024

/** U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf)

/** The answers of this process. */
export function createAnswers(): Answers {
  const keep = createByteCache<Answer>(KEPT_BYTES)

  async function get(asked: Asked): Promise<Answer> {
    return await keep(asked.etag, async () => {
      if (asked.encoding === 'identity') return await workOut(asked)
      const { body, headers } = await get(representationOf(asked, 'identity'))
      return answerOf(await encode(body, asked.encoding), headers)
    })
  }

  return {
    get,
    async warm(snapshot, questions) {
      for (const question of questions) {
        const place = { snapshot, question, format: 'json' } as const
        for (const encoding of ENCODINGS) await get(representationOf(place, encoding))
      }
    },
  }
}

async function workOut(asked: Asked): Promise<Answer> {
  const { rows, total } = await asked.question.read(asked.snapshot)
  return answerOf(encodeRows(asked, rows), {
    Link: linkField(asked, total),
    ...(total === undefined ? {} : { 'X-Total-Count': String(total) }),
    'Content-Type': FORMATS[asked.format].contentType,
  })
}

function answerOf(body: Buffer, headers: Headers): Answer {
  return { body, headers: { ...headers, 'Content-Length': String(body.length) } }
}

/** The rows in the format of their place. */
export function encodeRows(place: Place, rows: Table['rows']): Buffer {
  const { snapshot, question, format, hasMark } = place
  const meta = metaOf(place)
  const metadata = {
    ...meta,
    ...question.metadata,
    license: LICENCE.name,
    license_url: LICENCE.url,
    attribution: snapshot.attribution,
  }
  const body = encodeDocument(format, { columns: question.columns, rows, meta, metadata })
  return hasMark === true ? Buffer.concat([BYTE_ORDER_MARK, body]) : body
}

function metaOf({ snapshot, question }: Place): RankingMeta {
  const { start, end } = question.window
  return { as_of: snapshot.asOf, start_date: start, end_date: end, version: DATASET_VERSION }
}
