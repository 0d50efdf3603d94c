/** GET /rankings.csv and /rankings.json, and the same for models: the rows of a list without a key (CONTRACT 4.6). */
import { RANKING_COLUMNS } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { metaOf } from '../datasets/reply.ts'
import { jsonText } from '../http/call.ts'
import { invalidParameter } from '../http/query-parameters.ts'
import type { View } from './document.ts'
import { LISTS, readList, type List, type ListParameters, type Subject } from './list.ts'

/** Spreadsheets take CSV without it for another character set. */
const BYTE_ORDER_MARK = '\u{feff}'

/** The rows of a list in a format; JSON also has the series by day, if the request wants them. */
export function listFile(subject: Subject, format: 'csv' | 'json'): View {
  const { app_id: _id, app_name: _name, ...figures } = RANKING_COLUMNS
  const columns = subject === 'apps' ? RANKING_COLUMNS : ({ model_permaslug: 'text', ...figures } as const)
  return {
    contentType: FORMATS[format].contentType,
    parameters: LISTS[subject],
    async make({ snapshot }, parameters: ListParameters) {
      const list = await readList(snapshot, subject, parameters)
      if (list.unknown.length > 0) {
        throw invalidParameter(subject, list.unknown.join(','), `public ${subject} of this snapshot`)
      }
      const inPage = list.items.filter((item) => item.in_page)
      const rows = inPage.map(({ id, name, rank, requests, tokens }) => {
        const item = subject === 'apps' ? { app_id: BigInt(id), app_name: name } : { model_permaslug: id }
        return { ...item, rank: rank ?? 0n, total_requests: requests, total_tokens: String(tokens) }
      })
      if (format === 'csv') return `${BYTE_ORDER_MARK}${csvText({ columns, rows })}`
      const series = parameters.series && { measure: list.measure, ...seriesOf(list) }
      return jsonText({ data: rows, meta: metaOf(snapshot, list), series })
    },
  }
}

/** Usage by day of the rows and of what else is drawn. */
export function seriesOf({ window, items }: List) {
  return {
    days: window.map(({ day }) => day),
    coverage: window.map(({ coverage }) => coverage),
    total: window.map(({ total }) => total),
    items: items.map(({ id, name, in_list, values }) => {
      return { id, name, in_list, values: values.slice(-window.length) }
    }),
  }
}
