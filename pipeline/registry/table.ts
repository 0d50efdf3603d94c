/** Rows as tab-separated lines with a header. */
export function table(
  columns: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): string[] {
  const lines = rows.map((row) => columns.map((column) => cellText(row[column])))
  return [columns, ...lines].map((cells) => cells.join('\t'))
}

/** Tabs and line breaks in a name would break the table. */
function cellText(value: unknown): string {
  const text = Array.isArray(value) ? value.join('|') : typeof value === 'string' ? value : ''
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
}
