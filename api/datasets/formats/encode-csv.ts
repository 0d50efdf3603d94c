import { SPREADSHEET_FORMULA, type RankingRow } from '../../../pipeline/contract/dataset.ts'

const COLUMNS = ['app_id', 'app_name', 'rank', 'total_requests', 'total_tokens'] as const
const FORMULA = new RegExp(SPREADSHEET_FORMULA)
const NEEDS_QUOTES = /[",\r\n]/

/** CSV (RFC 4180, lines end in LF) with a header; the columns stand in the order of the JSON keys. */
export function encodeCsv(rows: readonly RankingRow[]): Buffer {
  const lines = rows.map((row) => COLUMNS.map((column) => cell(row[column])).join(','))
  return Buffer.from([COLUMNS.join(','), ...lines].map((line) => `${line}\n`).join(''))
}

function cell(value: string | bigint): string {
  // The minus of an app_id begins no formula, and an apostrophe would make it text.
  return typeof value === 'bigint' ? String(value) : textCell(value)
}

function textCell(text: string): string {
  // Names come from strangers, and a spreadsheet would run some of them.
  const safe = FORMULA.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
