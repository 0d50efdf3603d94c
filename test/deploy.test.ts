/** The deployment files fit the project: their paths exist, and alerts and dashboard use existing metrics. */
import { existsSync, globSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, it } from 'vitest'
import { readSettings } from '../api/config.ts'
import { PINNED_RUNTIME } from '../pipeline/contract/version.ts'
import { startApi } from './support/api.ts'
import { makeFolder } from './support/folders.ts'
import { hasProgram } from './support/programs.ts'
import { REPOSITORY, startProcess, textOf } from './support/processes.ts'

it.each(['data/deploy/prometheus-rules.yml', 'data/deploy/grafana-dashboard.json'])(
  '%s uses only metrics that the service exports',
  async (name) => {
    await using api = await startApi(makeFolder())
    const metrics = await (await fetch(`${api.origin}/metrics`)).text()
    const exported = new Set(metrics.matchAll(/^# TYPE (\S+)/gm).map(([, metric]) => metric))
    const uses = textOf(name).matchAll(/\b(?:chat|dataset|http|scim|usage)_[a-z_]+\b/g)
    const named = Array.from(uses, ([metric]) => metric.replace(/_bucket$/, ''))
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((metric) => !exported.has(metric))).toEqual([])
  },
)

it('nginx takes chat requests as large as the service does', () => {
  expect(textOf('data/deploy/nginx.conf')).toContain(
    `client_max_body_size ${readSettings({}).CHAT_BODY_MIB}m;`,
  )
})

it('the container image runs the pinned runtime', () => {
  const images = [...textOf('Dockerfile').matchAll(/^FROM node:(\S+?)-/gm)].map(([, version]) => version)
  expect(images).toEqual([PINNED_RUNTIME, PINNED_RUNTIME])
})

it('every image is pinned by its digest', () => {
  const images = [
    ...`${textOf('Dockerfile')}${textOf('compose.yaml')}`.matchAll(/^(?:FROM| *image:) (\S+)/gm),
  ]
  expect(images).toHaveLength(3)
  for (const [, image] of images) expect(image).toMatch(/@sha256:[\da-f]{64}$/)
})

it('the container image copies existing files and runs without privileges', () => {
  const lines = textOf('Dockerfile').split('\n')
  const sources = lines
    .filter((line) => /^COPY (?!--from)/.test(line))
    .flatMap((line) => line.split(' ').slice(1, -1))
  expect(sources.length).toBeGreaterThan(3)
  expect(sources.filter((source) => !existsSync(join(REPOSITORY, source)))).toEqual([])
  expect(lines.findLast((line) => line.startsWith('USER '))).toBe('USER node')
})

it.each(['app-rankings.service', 'app-rankings-nightly.service'])(
  'the unit %s starts an entry of the project',
  (unit) => {
    const entry = /ExecStart=\S+node (\S+)/.exec(textOf(`data/deploy/${unit}`))?.[1] ?? 'none'
    expect(existsSync(join(REPOSITORY, entry))).toBe(true)
  },
)

it.runIf(hasProgram('systemd-analyze'))('systemd accepts the units unchanged', async () => {
  const folder = makeFolder()
  const units = globSync('data/deploy/*.{service,timer}', { cwd: REPOSITORY })
  const copies = units.map((unit) => {
    const copy = join(folder, basename(unit))
    // A machine without an installation lacks only the program that a unit starts.
    writeFileSync(copy, textOf(unit).replace('/opt/app-rankings/node_modules/.bin/node', process.execPath))
    return copy
  })
  expect(copies).toHaveLength(3)
  const verified = await startProcess('systemd-analyze', ['verify', ...copies]).ended
  expect(verified).toMatchObject({ code: 0, stdout: '', stderr: '' })
})
