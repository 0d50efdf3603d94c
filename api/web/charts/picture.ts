/** Standalone pictures of the data: SVG with its own colours, and PNG. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { renderAsync } from '@resvg/resvg-js'
import { shorten } from '../../untrusted/shorten.ts'
import { html, isolated, raw, type Html } from '../html.ts'

/** The size of link previews. */
export const PICTURE = { width: 1200, height: 630, margin: 40 } as const

const NAME_LETTERS = 28
const CREDIT_LETTERS = 150

/** The light colours of the style sheet by variable name, since no style sheet applies to a picture. */
const COLOURS = new Map(
  [
    ...readFileSync(new URL('../assets/page.css', import.meta.url), 'utf8').matchAll(
      /--([\w-]+): light-dark\((#\w+),/g,
    ),
  ].map(([, name = '', colour = '']) => [name, colour]),
)

/** The colour of the style sheet with this name. */
export function colourOf(name: string): string {
  return COLOURS.get(name) ?? '#000000'
}

// Bundled fonts for machines without any; other installed fonts add further scripts.
const { resolve } = createRequire(import.meta.url)
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold'].map((name) => resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`))

/** The PNG of a drawing. */
export async function toPng(svg: string): Promise<Buffer> {
  const font = { fontFiles: FONTS, loadSystemFonts: true, defaultFontFamily: 'DejaVu Sans' }
  const picture = await renderAsync(svg, { font })
  return picture.asPng()
}

interface Picture {
  readonly title: string
  readonly content: Html
  /** Credit lines, a paragraph each. */
  readonly credits: readonly string[]
}

/** The whole drawing: title above, credits below. */
export function drawPicture({ title, content, credits }: Picture): string {
  const { width, height, margin } = PICTURE
  const lines = credits.flatMap((credit) => wrapped(credit, CREDIT_LETTERS))
  return html`<svg
    xmlns="http://www.w3.org/2000/svg"
    viewBox="0 0 ${width} ${height}"
    width="${width}"
    height="${height}"
    role="img"
    font-family="'DejaVu Sans', system-ui, sans-serif"
    font-size="20"
    fill="${colourOf('text')}"
  >
    <title>${title}</title>
    ${styles()}
    <rect width="${width}" height="${height}" fill="${colourOf('panel')}" />
    <text x="${margin}" y="58" font-size="${titleSize(title)}" font-weight="700">${title}</text>
    ${content}
    ${lines.map(
      (line, index) =>
        html`<text
          class="tick"
          font-size="14"
          x="${margin}"
          y="${height - 20 - 19 * (lines.length - 1 - index)}"
        >
          ${line}
        </text>`,
    )}
  </svg>`.html
}

/** Font size of a title that fits: bold letters are about 0.7 of their size wide. */
function titleSize(title: string): number {
  return Math.min(30, Math.floor((PICTURE.width - 2 * PICTURE.margin) / (0.7 * title.length)))
}

/** The style rules for charts. */
function styles(): Html {
  const bands = [...COLOURS].filter(([name]) => name.startsWith('band-'))
  return raw(`<style>
    ${bands.map(([name, colour]) => `.band.${name}, .key.${name} { fill: ${colour} }`).join('\n')}
    .stripe { fill: ${colourOf('panel')} }
    .band { stroke: ${colourOf('panel')}; stroke-width: 1 }
    .grid { stroke: ${colourOf('line')} }
    .tick { fill: ${colourOf('quiet')} }
    .gap { fill: ${colourOf('line')} }
    .restated { fill: ${colourOf('warn')} }
    .fields { fill: none }
  </style>`)
}

/** An untrusted name for a place of a fixed width. */
export function shortName(name: string): string {
  return isolated(shorten(name, NAME_LETTERS))
}

function wrapped(text: string, letters: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= letters) {
      lines[lines.length - 1] = `${last} ${word}`
    } else lines.push(word)
  }
  return lines
}
