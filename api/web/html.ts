/** HTML as a tagged template: inserted values are escaped, except HTML. */
import { printable } from '../../pipeline/program/terminal.ts'

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

/** A piece of HTML; only `markup` and `raw` create it. */
export type Html = { readonly html: string }

export type Piece = Html | string | number | bigint | boolean | null | undefined | readonly Piece[]

/** Builds HTML; null, undefined and false are omitted, lists are joined. */
export function markup(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return raw(String.raw({ raw: strings }, ...pieces.map(render)))
}

/** Marks text as HTML; never use it for untrusted text. */
export function raw(text: string): Html {
  return { html: text }
}

function render(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (typeof piece === 'object') return 'html' in piece ? piece.html : piece.map(render).join('')
  // HTML and XML forbid control characters, literally and as references.
  return printable(String(piece)).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Parameters of an address by name; empty ones are left out. */
export type Given = Readonly<Record<string, string | number | null | undefined>>

const filled = (parameters: Given) => Object.entries(parameters).filter(([, value]) => value)

export function address(path: string, parameters: Given): string {
  const query = new URLSearchParams(filled(parameters).map(([name, value]) => [name, String(value)]))
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

/** A form that keeps these parameters. */
export function form(attributes: Html | null, kept: Given, fields: Html): Html {
  const hidden = filled(kept).map(
    ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}" />`,
  )
  return markup`<form ${attributes}>${hidden} ${fields}</form>`
}
