const OBEYED = /(?![\t\n])\p{Cc}/gu

/** Text for a terminal, which would obey control characters that come out of a file; tabs and line ends stay. */
export function printable(text: string): string {
  return text.replaceAll(OBEYED, '\uFFFD')
}
