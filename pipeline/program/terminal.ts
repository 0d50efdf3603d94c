/** Output of all programs: data on stdout, messages on stderr (CONTRACT 9). */

/** Exit code for wrong usage, wrong settings, and crashes (CONTRACT 9). */
export const EXIT_USAGE = 2

// A message without a reader stops no work.
process.stderr.on('error', () => undefined)

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has closed the pipe, as `head` does.
  if (error.code === 'EPIPE') return
  note(`Cannot write to stdout: ${error.message}`)
  process.exitCode = EXIT_USAGE
})

/** Writes data to stdout. If stdout cannot be written, the process exits with 2. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Writes a message to stderr. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`)
}

const CONTROL_CHARACTERS = /(?![\t\n])\p{Cc}/gu

/** Text without control characters, which a terminal would obey; tabs and line ends stay. */
export function printable(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, '\uFFFD')
}

/** A count with its noun: `1 day`, `0 days`, `2 days`. Only for plurals in `s`. */
export function pluralize(count: number | bigint | string, noun: string): string {
  return `${count} ${noun}${String(count) === '1' ? '' : 's'}`
}

/** The first `most` texts, and how many more there are. */
export function firstFew(texts: readonly string[], most: number): string[] {
  const more = texts.length - most
  return more > 0 ? [...texts.slice(0, most), `and ${more} more`] : [...texts]
}

const GROUPED = new Intl.NumberFormat('en')

/** A whole number with grouped digits: `48,278,728`. */
export function grouped(value: bigint | number | string): string {
  return GROUPED.format(BigInt(value))
}

/** Width of a help text. */
const HELP_COLUMNS = 100

/** Wraps a text into lines of at most 100 columns, each after `indent`. */
export function wrap(text: string, indent = ''): string {
  const line = new RegExp(`(.{1,${HELP_COLUMNS - indent.length}})(?: +|$)`, 'g')
  return text.replace(line, `${indent}$1\n`).trimEnd()
}

/** A term, and below it its explanation, as a part of a help. */
export function explained(term: string, text: string): string {
  return `${wrap(term, '  ')}\n${wrap(text, '      ')}`
}

/** Rows as a text table with the names above: aligned columns, numbers to the right. */
export function formatTable(names: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const columns = names.map((name, at) => {
    const cells = rows.map((row) => cellText(row[at]))
    const width = cells.reduce((widest, cell) => Math.max(widest, cell.length), name.length)
    const isNumeric = cells.every((cell) => /^-?\d*(?:\.\d+)?$/.test(cell))
    return [name, ...cells].map((cell) => (isNumeric ? cell.padStart(width) : cell.padEnd(width)))
  })
  const lines = [names, ...rows].map((_, line) => columns.map((cells) => cells[line]).join('  '))
  return lines.map((line) => line.trimEnd()).join('\n')
}

function cellText(value: unknown): string {
  if (value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // A line break in a value would break the table, and a terminal obeys control characters.
  return text.replaceAll(/[\s\p{Cc}]/gu, ' ')
}

/** Prints rows with the columns `names` as JSON or as a table. */
export function printRows(
  { print: write, json }: { readonly print: typeof print; readonly json: boolean },
  names: readonly string[],
  rows: readonly (readonly unknown[])[],
): void {
  const objects = () => rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])))
  write(json ? JSON.stringify(objects(), null, 2) : formatTable(names, rows))
}
