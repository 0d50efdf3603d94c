/** CONTRACT 9: programs with output that cannot be written, or that nobody reads. */
import { describe, expect, it } from 'vitest'
import { until } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/pipeline/two-nights.ts'
import { freePort } from '../support/ports.ts'
import { startRedirected } from '../support/processes.ts'

const APPS = 3
type Start = (stream: 'stdout' | 'stderr', ...rest: Rest) => ReturnType<typeof startRedirected>
type Rest = [command: Parameters<typeof startRedirected>[1], environment: Readonly<Record<string, string>>]

/** Starts a program, of which one output is lost, and how that ends if the output is the program's data. */
const WAYS: Readonly<Record<string, { readonly start: Start; readonly end: object }>> = {
  'on a full disk': {
    start: (stream, ...rest) => startRedirected(`${stream === 'stdout' ? 1 : 2}>/dev/full`, ...rest),
    end: { code: 2, stderr: expect.stringMatching(/^Cannot write to stdout: ENOSPC.*\n$/) },
  },
  'without a reader': {
    start(stream, ...rest) {
      const started = startRedirected('', ...rest)
      started.child[stream].destroy()
      return started
    },
    end: { code: 0, stderr: '' },
  },
}

async function publishedFirst(): Promise<string> {
  const dataDir = makeFolder()
  await publishFirstNight(dataDir, APPS)
  return dataDir
}

describe.each(Object.entries(WAYS))('%s', (_where, { start, end }) => {
  it('the log blocks neither the service nor its end', async () => {
    const port = String(await freePort())
    const environment = { DATA_DIR: makeFolder(), PORT: port, LOG_LEVEL: 'debug' }
    const service = start('stderr', ['api/server.ts'], environment)
    // Each request has a log line.
    const answers = async () =>
      (await fetch(`http://127.0.0.1:${port}/api/v1/status`).catch(() => undefined))?.ok === true
    await until(answers)
    for (let request = 0; request < 200; request += 1) expect(await answers()).toBe(true)
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  it('a run with lost messages publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const command = ['pipeline/nightly.ts', 'run', '--as-of', SECOND_NIGHT] as const
    expect(await start('stderr', command, { DATA_DIR: dataDir }).ended).toMatchObject({ code: 0 })
    await expectSecondNight(dataDir, APPS)
  })

  it.each([
    ['api/commands/keys.ts', 'list'],
    ['pipeline/nightly.ts', 'status'],
  ] as const)('lost data of %s %s end it as its reader can tell', async (...command) => {
    const started = start('stdout', command, { DATA_DIR: await publishedFirst() })
    expect(await started.ended).toMatchObject({ ...end, signal: null })
  })
})
