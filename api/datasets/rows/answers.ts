/** Bodies of replies by snapshot, question, format and coding: computed once for concurrent requests, then cached. */
import { DATASET_VERSION, LICENCE, type RankingMeta } from '../../../pipeline/contract/dataset.ts'
import { createBodyCache } from '../../http/protocol/body-cache.ts'
import { ENCODINGS } from '../../http/protocol/encodings.ts'
import type { Headers } from '../../http/call.ts'
import { encodeDocument } from '../formats/encode.ts'
import type { Table } from '../formats/table.ts'
import type { Snapshot } from '../snapshots/facts.ts'
import { linkField } from './links.ts'
import type { Place, Question } from './question.ts'
import { representationOf, type Representation } from './representation.ts'

/** A representation of an open snapshot. */
interface OpenRepresentation extends Representation {
  readonly snapshot: Snapshot
}

/** The bytes of a representation. */
interface Answer {
  readonly body: Buffer
  /** The headers that depend on the rows. */
  readonly headers: Headers
}

export interface Answers {
  /** The answer to a question; its snapshot must stay open meanwhile. */
  get(representation: OpenRepresentation): Promise<Answer>
  /** Computes answers in advance. */
  warm(snapshot: Snapshot, questions: readonly Question[]): Promise<void>
}

/** Bytes of all cached answers together. */
const CACHE_BYTES = 64 * 1024 * 1024

/** U+FEFF in UTF-8. */
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf)

/** The answers of this process. */
export function createAnswers(): Answers {
  const keep = createBodyCache<Answer>(CACHE_BYTES)
  const get = (representation: OpenRepresentation) =>
    keep(representation.name, representation.encoding, () => workOut(representation))
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

async function workOut(representation: OpenRepresentation): Promise<Answer> {
  const { rows, total } = await representation.question.read(representation.snapshot)
  return {
    body: encodeRows(representation, rows),
    headers: {
      Link: linkField(representation, total),
      ...(total === undefined ? {} : { 'X-Total-Count': String(total) }),
    },
  }
}

/** The rows in the format of their place. */
function encodeRows(place: Place, rows: Table['rows']): Buffer {
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
