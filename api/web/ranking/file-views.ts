/** GET /rankings.csv and /rankings.json (CONTRACT 4.6): the rows of the page as a file, without a key. */
import { FORMATS } from '../../datasets/formats/formats.ts'
import { rankingsQuestion } from '../../datasets/rankings/app-rankings.ts'
import { encodeRows } from '../../datasets/rows/answers.ts'
import { queryString } from '../../http/respond.ts'
import type { View } from '../views.ts'
import { readRows } from './page-data.ts'
import { parsePageParameters, resolvePage, type PageParameters } from './page-query.ts'

/** The rows of the page in a format, with the page's parameters. */
export function rankingFile(format: 'csv' | 'json'): View<PageParameters> {
  return {
    name: `ranking.${format}`,
    contentType: FORMATS[format].contentType,
    read: (request) => parsePageParameters(queryString(request)),
    async make({ snapshot }, asked) {
      const query = resolvePage(asked, snapshot)
      const { rows } = await readRows(snapshot, query)
      return encodeRows(
        { snapshot, question: rankingsQuestion(query), format },
        rows.map(({ excess: _excess, ...row }) => row),
      )
    },
  }
}
