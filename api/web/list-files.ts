/** GET /rankings.csv, /rankings.json and their twins of models (CONTRACT 4.6): the rows of a page, without a key. */
import { DATASET_VERSION, type Columns } from '../../pipeline/contract/dataset.ts'
import { csvText, FORMATS } from '../datasets/formats.ts'
import { daysOf } from '../datasets/window.ts'
import { jsonText, queryString } from '../http/respond.ts'
import { readList, type Item, type ListData, type Row } from './list-data.ts'
import { parseList, resolveList, type List, type ListRequest, type Subject } from './parameters.ts'
import type { View } from './views.ts'

/** The addresses of a list's files. */
export const FILES = {
  apps: { csv: '/rankings.csv', json: '/rankings.json' },
  models: { csv: '/models.csv', json: '/models.json' },
} as const satisfies Readonly<Record<Subject, object>>

/** Spreadsheets take CSV without it for another character set. */
const BYTE_ORDER_MARK = '\u{feff}'

const FIGURES = { rank: 'integer', total_requests: 'integer', total_tokens: 'decimal' } as const
const COLUMNS: Readonly<Record<Subject, Columns>> = {
  apps: { app_id: 'integer', app_name: 'text', ...FIGURES },
  models: { model_permaslug: 'text', ...FIGURES },
}

/** The rows of a list in a format; JSON also has the series by day, if the request wants them. */
export function listFile(subject: Subject, format: 'csv' | 'json'): View<ListRequest> {
  return {
    name: FILES[subject][format],
    contentType: FORMATS[format].contentType,
    read: (request) => parseList(subject, queryString(request), { isJson: format === 'json' }),
    async make({ snapshot }, request) {
      const list = resolveList(request, snapshot)
      const data = await readList(snapshot, list)
      const rows = data.rows.map((row) => ({ ...nameOf(row, subject), ...figuresOf(row) }))
      if (format === 'csv') return `${BYTE_ORDER_MARK}${csvText({ columns: COLUMNS[subject], rows })}`
      const { start, end } = list
      const meta = { as_of: snapshot.asOf, start_date: start, end_date: end, version: DATASET_VERSION }
      const series = request.parameters.series === undefined ? undefined : seriesOf(list, data)
      return jsonText({ data: rows, meta, series })
    },
  }
}

function nameOf({ id, name }: Item, subject: Subject) {
  return subject === 'apps' ? { app_id: BigInt(id), app_name: name } : { model_permaslug: id }
}

function figuresOf({ rank, requests, tokens }: Row) {
  return { rank, total_requests: requests, total_tokens: String(tokens) }
}

/** Usage by day of the rows and of what else is drawn: decimal strings, null for days without data. */
function seriesOf(list: List, { days: all, rows, others }: ListData) {
  const days = all.slice(-daysOf(list))
  const items: readonly Item[] = [...rows, ...others]
  return {
    measure: list.measure,
    days: days.map(({ day }) => day),
    coverage: days.map(({ coverage }) => coverage),
    total: days.map(({ coverage, total }) => (coverage === 'missing' ? null : String(total))),
    [list.subject]: items.map((item) => ({
      ...nameOf(item, list.subject),
      in_list: item.isListed,
      values: days.map(({ day, coverage }) =>
        coverage === 'missing' ? null : String(item.daily.get(day) ?? 0n),
      ),
    })),
  }
}
