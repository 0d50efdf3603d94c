/** HTML as a tagged template: whatever is put in is escaped, unless it is HTML already. */

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

function render(piece: Piece): string {
  if (piece === null || piece === undefined) return ''
  if (typeof piece === 'object') return 'html' in piece ? piece.html : piece.map(render).join('')
  return String(piece).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}
