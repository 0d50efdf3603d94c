/** GET /rankings.csv and /rankings.json (CONTRACT 4.6): the rows of the page as a file, without a key. */
import { FORMATS } from '../../datasets/formats/formats.ts'
import { resolveQuery } from '../../datasets/rankings/query.ts'
import { rankingsQuestion } from '../../datasets/rankings/app-rankings.ts'
import { encodeRows } from '../../datasets/rows/answers.ts'
import { queryString } from '../../http/respond.ts'
import type { View } from '../views.ts'
import { parsePageParameters, withWindow, type PageParameters } from './page-query.ts'

/** The rows of the page in a format; parameters and rows are those of the page. */
export function rankingFile(format: 'csv' | 'json'): View<PageParameters> {
  return {
    name: `ranking.${format}`,
    contentType: FORMATS[format].contentType,
    read: (request) => parsePageParameters(queryString(request)),
    async make({ snapshot }, asked) {
      const question = rankingsQuestion(resolveQuery(withWindow(asked, snapshot), snapshot.dataThrough))
      const { rows } = await question.read(snapshot)
      return encodeRows({ snapshot, question, format }, rows)
    },
  }
}
