/** Rows as a text table for a terminal. */
import { pluralize } from '../program/terminal.ts'

/** Aligned columns, numbers to the right; the last line has the number of rows. */
export function formatTable(names: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map((row) => row.map(cellText))
  const widths = names.map((name, column) =>
    cells.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), name.length),
  )
  const toRight = names.map((_, column) => cells.every((row) => isNumber(row[column] ?? '')))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return toRight[column] === true ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '-'.repeat(width)).join('  ')
  return [line(names), rule, ...cells.map(line), `(${pluralize(rows.length, 'row')})`].join('\n')
}

function cellText(value: unknown): string {
  if (value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // A line break in a value would break the table, and a terminal obeys control characters.
  return text.replaceAll(/[\s\p{Cc}]/gu, ' ')
}

function isNumber(text: string): boolean {
  return /^-?\d*(?:\.\d+)?$/.test(text)
}
