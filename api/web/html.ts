/** HTML as a tagged template: whatever is put in is escaped, unless it is HTML already. */

/** Control characters besides white space: HTML and XML forbid them, as they are and as references. */
const FORBIDDEN = /(?![\t\n])\p{Cc}/gu

/** Controls that turn the direction of text around them, beyond the element they stand in. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/gu

/** A piece of HTML; only `html` and `raw` make one. */
export interface Html {
  readonly html: string
}

type Piece = Html | string | number | bigint | null | undefined | readonly Piece[]

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Builds HTML; null and undefined vanish, lists are joined. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const text = strings.reduce((built, part, index) => built + render(pieces[index - 1]) + part)
  return { html: text }
}

/** Text that is HTML already; nothing of a stranger may come here. */
export function raw(text: string): Html {
  return { html: text }
}

/** A name of a stranger where there can be no element around it: its direction ends with it. */
export function isolated(name: string): string {
  return `\u2068${name.replaceAll(DIRECTIONS, '')}\u2069`
}

function render(piece: Piece): string {
  if (piece === null || piece === undefined) return ''
  if (typeof piece === 'object') return 'html' in piece ? piece.html : piece.map(render).join('')
  return String(piece)
    .replaceAll(FORBIDDEN, '\u{fffd}')
    .replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}
