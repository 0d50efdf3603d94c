/**
 * Bodies of the rankings call: bytes per snapshot, query, format and encoding, worked out once however many ask at the
 * same time, and kept as long as there is room.
 */
import {
  DATASET_VERSION,
  LICENCE,
  RANKING_COLUMNS,
  SORTS,
  type RankingMeta,
  type RankingRow,
} from '../../../pipeline/contract/dataset.ts'
import { encode, ENCODINGS } from '../../http/protocol/encodings.ts'
import { createByteCache } from '../../process/byte-cache.ts'
import { encodeDocument } from '../formats/encode.ts'
import type { FileMetadata } from '../formats/table.ts'
import type { Snapshot } from '../snapshots/open-snapshot.ts'
import { linkField, type Place } from './links.ts'
import { resolveQuery } from './query.ts'
import { readRanking } from './read-ranking.ts'
import { representationOf, type Representation } from './representation.ts'

/** A representation in a snapshot that is open. */
interface Question extends Representation {
  readonly snapshot: Snapshot
}

/** The bytes of a representation. */
interface Answer {
  readonly body: Buffer
  /** The field `Link`, which depends on the rows. */
  readonly link: string
}

export interface Answers {
  /** The answer to a question; its snapshot must stay open meanwhile. */
  get(question: Question): Promise<Answer>
  /** Works out what is asked first and most. */
  warm(snapshot: Snapshot): Promise<void>
}

/** Bytes that all kept answers may have together. */
const KEPT_BYTES = 64 * 1024 * 1024

/** The answers of this process. */
export function createAnswers(): Answers {
  const keep = createByteCache<Answer>(KEPT_BYTES)

  async function get(question: Question): Promise<Answer> {
    return await keep(question.etag, async () => {
      if (question.encoding === 'identity') return await workOut(question)
      const { body, link } = await get(representationOf(question, 'identity'))
      return { body: await encode(body, question.encoding), link }
    })
  }

  return {
    get,
    async warm(snapshot) {
      for (const sort of SORTS) {
        const query = resolveQuery({ sort }, snapshot.dataThrough)
        const place = { snapshot, query, format: 'json' } as const
        for (const encoding of ENCODINGS) await get(representationOf(place, encoding))
      }
    },
  }
}

async function workOut(question: Question): Promise<Answer> {
  const rows = await readRanking(question.snapshot, question.query)
  return { body: encodeRanking(question, rows), link: linkField(question, rows.length) }
}

/** The rows of a ranking in the format of their place. */
export function encodeRanking(place: Place, rows: readonly RankingRow[]): Buffer {
  return encodeDocument(place.format, {
    columns: RANKING_COLUMNS,
    rows,
    meta: metaOf(place),
    metadata: fileMetadata(place),
  })
}

function metaOf({ snapshot, query }: Place): RankingMeta {
  return { as_of: snapshot.asOf, start_date: query.start, end_date: query.end, version: DATASET_VERSION }
}

function fileMetadata(place: Place): FileMetadata {
  const { sort, category, subcategory } = place.query
  return {
    ...metaOf(place),
    sort,
    category: category ?? '',
    subcategory: subcategory ?? '',
    license: LICENCE.name,
    license_url: LICENCE.url,
    attribution: place.snapshot.attribution,
  }
}
