/** The files that pages load; under the version of their content they are cached for ever. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { queryString } from '../http/call.ts'
import { fixedBody } from '../http/encodings.ts'
import type { Route } from '../http/route.ts'

const SCRIPT = 'text/javascript; charset=utf-8'
const own = (name: string) => new URL(`assets/${name}`, import.meta.url)
const ofPackage = (name: string) => new URL(import.meta.resolve(name))

/** By path: content type and file. */
const ASSETS = {
  '/assets/page.css': ['text/css; charset=utf-8', own('page.css')],
  '/assets/page.js': [SCRIPT, own('page.js')],
  '/assets/chart.js': [SCRIPT, new URL('chart.umd.min.js', import.meta.resolve('chart.js'))],
  '/assets/openapi-explorer.js': [SCRIPT, ofPackage('openapi-explorer/dist/browser/openapi-explorer.min.js')],
  '/assets/icon.svg': ['image/svg+xml', own('icon.svg')],
  '/robots.txt': ['text/plain; charset=utf-8', own('robots.txt')],
} as const

const FILES = Object.entries(ASSETS).map(([path, [contentType, file]]) => {
  const text = readFileSync(file)
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return { path, contentType, text, version }
})

/** The address of an asset with its version. */
export function assetAddress(path: keyof typeof ASSETS): string {
  return `${path}?${FILES.find((file) => file.path === path)?.version}`
}

/** A route per asset. Processes of two versions may answer side by side, so another version gets this one, briefly. */
export function assetRoutes(): Route[] {
  return FILES.map(({ path, contentType, text, version }) => {
    const send = fixedBody(contentType, text)
    return {
      method: 'GET',
      path,
      access: 'open',
      handle(request, reply) {
        const caching = queryString(request) === version ? 'max-age=31536000, immutable' : 'max-age=3600'
        return send(request, reply.set('Cache-Control', `public, ${caching}`))
      },
    }
  })
}
