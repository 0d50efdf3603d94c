/** HTML as a tagged template: inserted values are escaped, except HTML. */

export const HTML = 'text/html; charset=utf-8'

/** Headers of a document, which a body for programs does not need. */
export const DOCUMENT_HEADERS = {
  // Nothing from another host and nothing inline: styles and scripts are local files.
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; " +
    "frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
} as const

/** Control characters except white space: HTML and XML forbid them, literally and as references. */
const FORBIDDEN = /(?![\t\n])\p{Cc}/gu

/** A piece of HTML; only `markup` and `raw` create it. */
export type Html = {
  readonly html: string
}

export type Piece = Html | string | number | bigint | boolean | null | undefined | readonly Piece[]

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Builds HTML; null, undefined and false are omitted, lists are joined. */
export function markup(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return raw(strings.reduce((built, part, index) => built + render(pieces[index - 1]) + part))
}

/** Marks text as HTML; never use it for untrusted text. */
export function raw(text: string): Html {
  return { html: text }
}

function render(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (typeof piece === 'object') return 'html' in piece ? piece.html : piece.map(render).join('')
  return String(piece)
    .replaceAll(FORBIDDEN, '\u{fffd}')
    .replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}

/** Parameters of an address by name. */
export type Given = Readonly<Record<string, string | number | null | undefined>>

/** An address with the parameters that have a value. */
export function address(path: string, parameters: Given): string {
  const given = Object.entries(parameters).flatMap(([name, value]) => (value ? [[name, String(value)]] : []))
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`
}

/** A form that keeps `parameters`, except the page and those of its own `fields`, which it names in `own`. */
export function form(attributes: Html | null, parameters: Given, own: readonly string[], fields: Html): Html {
  const kept = Object.entries(parameters).filter(
    ([name, value]) => value && !['offset', ...own].includes(name),
  )
  return markup`<form ${attributes}>
    ${kept.map(([name, value]) => markup`<input type="hidden" name="${name}" value="${value}" />`)} ${fields}
  </form>`
}

/** A column of a table. */
export type Column<Row> = {
  readonly head: Piece
  readonly show: (row: Row) => Piece
  /**
   * Classes: `n` aligns numbers, `soft` is paler, `wide` is left out on narrow windows, `tags` is cut, `draw` needs a
   * script.
   */
  readonly kind?: string
  /** Whether its cells name their rows. */
  readonly isName?: boolean
}

export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Html {
  const cell = ({ show, kind, isName }: Column<Row>, row: Row) =>
    isName === true
      ? markup`<th scope="row" class="${kind}">${show(row)}</th>`
      : markup`<td class="${kind}">${show(row)}</td>`
  return markup`<table>
    <thead>
      <tr>${columns.map(({ head, kind }) => markup`<th scope="col" class="${kind}">${head}</th>`)}</tr>
    </thead>
    <tbody>
      ${rows.map((row) => markup`<tr>${columns.map((column) => cell(column, row))}</tr>\n`)}
    </tbody>
  </table>`
}
