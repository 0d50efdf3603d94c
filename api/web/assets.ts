/** The files that pages load; under the version of their content they are cached for ever. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fixedBody } from '../http/encodings.ts'
import { queryString } from '../http/call.ts'
import type { Route } from '../http/route.ts'

const SCRIPT = 'text/javascript; charset=utf-8'
const own = (name: string) => readFileSync(new URL(`assets/${name}`, import.meta.url), 'utf8')
const chart = readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')), 'utf8')

/** By path: content type and text. */
const ASSETS: Readonly<Record<string, readonly [contentType: string, text: string]>> = {
  '/assets/page.css': ['text/css; charset=utf-8', own('page.css')],
  '/assets/page.js': [SCRIPT, own('page.js')],
  '/assets/chart.js': [SCRIPT, chart],
  '/assets/icon.svg': ['image/svg+xml', own('icon.svg')],
  '/robots.txt': ['text/plain; charset=utf-8', own('robots.txt')],
}

const versionOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)
const VERSIONS = new Map(Object.entries(ASSETS).map(([path, [, text]]) => [path, versionOf(text)]))

/** The address of an asset with its version. */
export function assetAddress(path: string): string {
  return `${path}?${VERSIONS.get(path)}`
}

/** A route per asset. Processes of two versions may answer side by side, so another version gets this one, briefly. */
export function assetRoutes(): Route[] {
  return Object.entries(ASSETS).map(([path, [contentType, text]]) => {
    const forEver = fixedBody(contentType, text, { 'Cache-Control': 'public, max-age=31536000, immutable' })
    const briefly = fixedBody(contentType, text, { 'Cache-Control': 'public, max-age=3600' })
    const isCurrent = (query: string) => query === VERSIONS.get(path)
    return {
      method: 'GET',
      path,
      access: 'open',
      handle: (request, reply) => (isCurrent(queryString(request)) ? forEver : briefly)(request, reply),
    }
  })
}
