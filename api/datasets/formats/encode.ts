import {
  DATASET_VERSION,
  LICENCE,
  type RankingMeta,
  type RankingRow,
} from '../../../pipeline/contract/dataset.ts'
import { jsonText } from '../../http/respond.ts'
import { encodeArrow } from './encode-arrow.ts'
import { encodeCsv } from './encode-csv.ts'
import { encodeParquet } from './encode-parquet.ts'
import type { Format } from './formats.ts'
import type { Place } from '../rankings/links.ts'

/** The body of a rankings reply: the same rows in the same order in every format (CONTRACT 4.6). */
export async function encodeRankings(place: Place, rows: readonly RankingRow[]): Promise<Buffer> {
  return await ENCODERS[place.format](rows, place)
}

const ENCODERS: Readonly<
  Record<Format, (rows: readonly RankingRow[], place: Place) => Buffer | Promise<Buffer>>
> = {
  json: (rows, place) => Buffer.from(jsonText({ data: rows, meta: metaOf(place) })),
  csv: encodeCsv,
  parquet: (rows, place) => encodeParquet(rows, fileMetadata(place)),
  arrow: (rows, place) => encodeArrow(rows, fileMetadata(place)),
}

function metaOf({ snapshot, query }: Place): RankingMeta {
  return { as_of: snapshot.asOf, start_date: query.start, end_date: query.end, version: DATASET_VERSION }
}

/** What a file says of itself when it travels alone. */
function fileMetadata(place: Place): Readonly<Record<string, string>> {
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
