/** GET /datasets/app-rankings (CONTRACT 4): the top public apps by token usage inside a date window. */
import { RANKING_COLUMNS, SORTS } from '../../../pipeline/contract/dataset.ts'
import { RANKINGS_PATH } from '../../paths.ts'
import type { Question, RowsRequest } from '../rows/question.ts'
import type { SnapshotFacts } from '../snapshots/facts.ts'
import { MAX_OFFSET, parseParameters } from './parameters.ts'
import { resolveQuery, type RankingsQuery } from './query.ts'
import { readRanking } from './read-ranking.ts'

/**
 * Reads the query string of a request for a ranking.
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseRankings(text: string): RowsRequest {
  const parameters = parseParameters(text)
  return {
    asOf: parameters.as_of,
    format: parameters.format,
    hasMark: parameters.bom !== undefined,
    resolve: ({ dataThrough }) => rankingsQuestion(resolveQuery(parameters, dataThrough)),
  }
}

/** The most frequent requests: each sort without other parameters. */
export function usualRankings({ dataThrough }: SnapshotFacts): Question[] {
  return SORTS.map((sort) => rankingsQuestion(resolveQuery({ sort }, dataThrough)))
}

function rankingsQuestion(query: RankingsQuery): Question {
  const { sort, category, subcategory, start, end, limit, offset } = query
  return {
    path: RANKINGS_PATH,
    key: [sort, subcategory ?? category ?? 'all', start, end, limit, offset].join('.'),
    parameters: [
      ['sort', sort],
      ...(category === null ? [] : ([['category', category]] as const)),
      ...(subcategory === null ? [] : ([['subcategory', subcategory]] as const)),
      ['start_date', start],
      ['end_date', end],
      ['limit', String(limit)],
      ['offset', String(offset)],
    ],
    window: { start, end },
    page: { limit, offset, maxOffset: MAX_OFFSET },
    columns: RANKING_COLUMNS,
    metadata: { sort, category: category ?? '', subcategory: subcategory ?? '' },
    read: (snapshot) => readRanking(snapshot, query),
  }
}
