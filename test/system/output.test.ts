/** CONTRACT 9: programs with output that cannot be written, or that nobody reads. */
import { describe, expect, it } from 'vitest'
import { makeKey, until } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/pipeline/two-nights.ts'
import { freePort } from '../support/ports.ts'
import { startProgram, type Started } from '../support/processes.ts'

const APPS = 3

type Program = readonly [path: string, args: readonly string[], environment: Readonly<Record<string, string>>]

/** Starts a program without one of its outputs; `end` is how it ends if that was its data. */
type Way = {
  readonly start: (lost: 'stdout' | 'stderr', ...program: Program) => Started
  readonly end: object
}

const WAYS: Readonly<Record<string, Way>> = {
  'on a full disk': {
    start: (lost, ...program) =>
      startProgram(...program, ['sh', '-c', `exec "$0" "$@" ${lost === 'stdout' ? 1 : 2}>/dev/full`]),
    end: { code: 2, stderr: expect.stringMatching(/^Cannot write to stdout: ENOSPC.*\n$/) },
  },
  'without a reader': {
    start(lost, ...program) {
      const started = startProgram(...program)
      started.child[lost].destroy()
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
    const service = start('stderr', 'api/server.ts', [], environment)
    // Each request has a log line.
    const answers = async () =>
      (await fetch(`http://127.0.0.1:${port}/api/v1/status`).catch(() => undefined))?.ok === true
    await until(answers)
    for (let request = 0; request < 200; request += 1) expect(await answers()).toBe(true)
    expect(await service.stop()).toMatchObject({ code: 0 })
  })

  it('a run with lost messages publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const args = ['run', '--as-of', SECOND_NIGHT]
    const { ended } = start('stderr', 'pipeline/nightly.ts', args, { DATA_DIR: dataDir })
    expect(await ended).toMatchObject({ code: 0 })
    await expectSecondNight(dataDir, APPS)
  })

  it.each([
    ['api/commands/keys.ts', 'list'],
    ['pipeline/nightly.ts', 'status'],
  ])('lost data of %s %s end it as its reader can tell', async (program, command) => {
    const environment = { DATA_DIR: await publishedFirst() }
    await makeKey(environment)
    const { ended } = start('stdout', program, [command], environment)
    expect(await ended).toMatchObject({ ...end, signal: null })
  })
})
