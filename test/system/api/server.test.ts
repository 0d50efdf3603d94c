/** CONTRACT 9: how the service starts and ends: gracefully on one signal, at once on a second; under npm and a terminal too. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { said, startServer, until } from '../../support/api.ts'
import { halfRequest, sendOver } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'
import { listen } from '../../support/ports.ts'
import { startProcess, startProgram } from '../../support/processes.ts'
import { hasProgram } from '../../support/programs.ts'

it('rejects an argument, names the help and starts nothing', async () => {
  const dataDir = makeFolder()
  const wrong = await startProgram('api/server.ts', ['--port', '80'], { DATA_DIR: dataDir }).ended
  const stderr = 'Unexpected argument "--port": settings come from the environment. See --help\n'
  expect(wrong).toMatchObject({ code: 2, stdout: '', stderr })
  expect(readdirSync(dataDir)).toEqual([])
})

/** Three requests in flight at a service that has got a signal, and so closed idle connections. */
async function afterSignal(origin: string, sendSignal: () => unknown) {
  const idle = sendOver(origin, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(idle, 'data')
  const busy = await Array.fromAsync({ length: 3 }, () => halfRequest(origin))
  const closed = once(idle, 'close')
  sendSignal()
  await closed
  return busy
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'on %s finishes the requests in flight, closes idle connections and exits with 0',
  async (signal) => {
    const { origin, child, ended } = await startServer({ DATA_DIR: makeFolder() })
    for (const request of await afterSignal(origin, () => child.kill(signal)))
      expect(await request.finish()).toMatch(/^HTTP\/1\.1 200 [^]*^Connection: close/im)
    expect(await ended).toMatchObject({ code: 0, stdout: '' })
  },
)

it.each([
  ['SIGTERM', 'SIGTERM'],
  ['SIGTERM', 'SIGINT'],
  ['SIGINT', 'SIGINT'],
] as const)('on %s and then %s ends at once', async (first, second) => {
  const { origin, child, ended } = await startServer({ DATA_DIR: makeFolder(), npm_lifecycle_event: '' })
  await afterSignal(origin, () => child.kill(first))
  child.kill(second)
  expect(await ended).toMatchObject({ code: null, signal: second })
})

it('under npm, which passes on a Ctrl-C a second time, ends at once on the next', async () => {
  const { origin, child, ended } = await startServer({ DATA_DIR: makeFolder(), npm_lifecycle_event: 'serve' })
  const stop = () => child.kill('SIGINT')
  const [one, other] = await afterSignal(origin, stop)
  stop()
  for (const request of [one, other]) expect(await request?.finish()).toMatch(/^HTTP\/1\.1 200 /)
  stop()
  expect(await ended).toMatchObject({ code: null, signal: 'SIGINT' })
})

/** The signal that npm passes on may arrive after the end of all handlers, and then ends the process. */
const ENDS = [0, 'SIGTERM', 'SIGINT']
const LISTENING = /"origin":"([^"]+)"/

/** `npm run NAME` over an empty folder, in its own process group; the rest of it ends with `using`. */
function npmRun(name: string, environment: Readonly<Record<string, string>> = {}) {
  const program = startProcess('npm', ['run', '-s', name], {
    environment: { DATA_DIR: makeFolder(), PORT: '0', NO_UPDATE_NOTIFIER: '1', ...environment },
    detached: true,
  })
  const { pid } = program.child
  if (pid === undefined) throw new Error('npm did not start')
  const signalGroup = (signal: NodeJS.Signals) => process.kill(-pid, signal)
  return {
    ...program,
    signalGroup,
    [Symbol.dispose]() {
      try {
        signalGroup('SIGKILL')
      } catch {
        // Expected: nothing is left.
      }
    },
  }
}

describe('SIGTERM to npm alone', () => {
  it.each([
    ['start', 'stdout', /Try it: /],
    ['serve', 'stderr', LISTENING],
  ] as const)('ends `npm run %s` like a signal to the program', async (name, stream, ready) => {
    using program = npmRun(name)
    await said(program, stream, ready)
    // Output ends only when every process that shares it has ended.
    const { code, signal, stderr } = await program.stop()
    expect(stderr).toContain('"stopped"')
    expect(signal ?? code).toBeOneOf(ENDS)
  })

  it('ends `npm run schedule`', async () => {
    using program = npmRun('schedule')
    await said(program, 'stderr', /the next nightly run is at/)
    expect(await program.stop()).toMatchObject({ signal: 'SIGTERM' })
  })

  it('ends `npm run nightly`, which prints what stays', async () => {
    const silent = createServer((socket) => void socket.on('error', () => undefined).resume())
    const asked = once(silent, 'connection')
    const { port } = await listen(silent)
    using program = npmRun('nightly', { USAGE_SOURCE: `clickhouse://127.0.0.1:${port}/default?table=usage` })
    await Promise.race([asked, program.ended])
    const { signal, stderr } = await program.stop()
    expect(signal).toBe('SIGTERM')
    expect(stderr).toContain('Stopped by SIGTERM. What is published stays')
  })
})

// A terminal sends its Ctrl-C to the whole group, and systemd its SIGTERM to the whole unit.
it.each(['SIGINT', 'SIGTERM'] as const)(
  'a %s to npm and the program, which npm passes on a second time, lets requests finish',
  async (stop) => {
    using program = npmRun('serve')
    const [, origin = ''] = await said(program, 'stderr', LISTENING)
    for (const request of await afterSignal(origin, () => program.signalGroup(stop)))
      expect(await request.finish()).toMatch(/^HTTP\/1\.1 200 /)
    const { code, signal, stderr } = await program.ended
    expect(stderr).toContain('"stopped"')
    expect(signal ?? code).toBeOneOf(ENDS)
  },
)

it.runIf(process.platform === 'linux' && hasProgram('script'))('ends with its terminal', async () => {
  const dataDir = makeFolder()
  const command = `echo "pid=$$"; exec '${process.execPath}' api/server.ts`
  const options = ['--quiet', '--flush', '--return', '--command', command, '/dev/null']
  const terminal = startProcess('script', options, { environment: { DATA_DIR: dataDir, PORT: '0' } })
  const [, pid = ''] = await said(terminal, 'stdout', /pid=(\d+)[^]*listening origin=http:/)
  expect(commandLine(pid)).toContain('api/server.ts')
  terminal.child.kill('SIGKILL')
  await until(() => commandLine(pid) === '')
})

/** The command line of a process, empty once it has ended. */
function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
