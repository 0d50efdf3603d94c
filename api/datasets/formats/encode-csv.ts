import { SPREADSHEET_FORMULA, type ColumnType } from '../../../pipeline/contract/dataset.ts'
import type { Table } from './table.ts'

const FORMULA = new RegExp(SPREADSHEET_FORMULA)
const NEEDS_QUOTES = /[",\r\n]/

const CELLS: Readonly<Record<ColumnType, (value: string) => string>> = {
  text: textCell,
  // Integers need no escape: a minus starts no formula there, and an apostrophe would make them text.
  integer: (digits) => digits,
  decimal: (digits) => digits,
}

/** CSV (RFC 4180, lines end in LF) with a header. */
export function encodeCsv({ columns, rows }: Table): Buffer {
  const cells = Object.entries(columns).map(([name, type]) => [name, CELLS[type]] as const)
  const lines = rows.map((row) => cells.map(([name, cell]) => cell(String(row[name]))).join(','))
  return Buffer.from([Object.keys(columns).join(','), ...lines].map((line) => `${line}\n`).join(''))
}

function textCell(text: string): string {
  // Names are untrusted, and a spreadsheet would run some of them as formulas.
  const safe = FORMULA.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
