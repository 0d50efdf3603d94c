/** The files that pages load; under the version of their content they are cached for ever. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Handler } from '../http/call.ts'
import { fixedBody } from '../http/protocol/fixed-body.ts'
import { queryString } from '../http/respond.ts'
import type { Route } from '../http/route.ts'

const own = (name: string) => readFileSync(new URL(`assets/${name}`, import.meta.url))
const CHART = readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')))
const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'

/** By path. */
const ASSETS: Readonly<Record<string, readonly [contentType: string, bytes: Buffer]>> = {
  '/assets/page.css': [STYLE, own('page.css')],
  '/assets/page.js': [SCRIPT, own('page.js')],
  '/assets/search.js': [SCRIPT, own('search.js')],
  // Without its last line, the address of a source map that is not served.
  '/assets/chart.js': [
    SCRIPT,
    Buffer.from(CHART.toString().replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')),
  ],
  '/assets/reference.css': [STYLE, own('reference.css')],
  '/assets/icon.svg': ['image/svg+xml', own('icon.svg')],
  '/robots.txt': ['text/plain; charset=utf-8', own('robots.txt')],
}

const versionOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex').slice(0, 12)

const VERSIONED = new Map(
  Object.entries(ASSETS).map(([path, [, bytes]]) => [path, `${path}?${versionOf(bytes)}`]),
)

/** The address of an asset with its version. */
export function assetAddress(path: string): string {
  return VERSIONED.get(path) ?? path
}

/** A route per asset. Processes of two versions may answer side by side, so another version gets this one, briefly. */
export function assetRoutes(): Route[] {
  return Object.entries(ASSETS).map(([path, [contentType, bytes]]) => {
    const forEver = fixedBody(contentType, bytes, { 'Cache-Control': 'public, max-age=31536000, immutable' })
    const briefly = fixedBody(contentType, bytes, { 'Cache-Control': 'public, max-age=3600' })
    const version = versionOf(bytes)
    const handle: Handler = (request, reply) =>
      queryString(request) === version ? forEver(request, reply) : briefly(request, reply)
    return { method: 'GET', path, access: 'open', handle }
  })
}
