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
  const lines: string[] = []
  let line = indent
  for (const word of text.split(/\s+/)) {
    if (line.length > indent.length && line.length + 1 + word.length > HELP_COLUMNS) {
      lines.push(line)
      line = indent
    }
    line += line.length > indent.length ? ` ${word}` : word
  }
  return [...lines, line].join('\n')
}
