/** A terminal, where the machine has a program that makes one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from './api.ts'
import { REPOSITORY } from './processes.ts'
import { hasProgram } from './programs.ts'

export const HAS_TERMINAL = process.platform === 'linux' && hasProgram('script')

/** Runs a shell's `command` on a terminal, which is closed with `using`. */
export function openTerminal(command: string, environment: Readonly<Record<string, string>>) {
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], {
    cwd: REPOSITORY,
    env: { ...process.env, TERM: 'dumb', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (screen += part))
  const ended = once(child, 'close')
  let isOpen = true
  void ended.then(() => (isOpen = false))
  return {
    ended,
    type: (keys: string) => void child.stdin.write(keys),
    /**
     * What has come on the screen since this was asked last, once `pattern` is in it.
     * @throws {Error} with the screen when the command ends without.
     */
    async seen(pattern: RegExp): Promise<string> {
      await until(() => {
        if (!isOpen && !pattern.test(screen)) throw new Error(`Ended with:\n${screen}`)
        return pattern.test(screen)
      })
      const shown = screen
      screen = ''
      return shown
    },
    /** Closes the terminal under the command, as closing its window does. */
    close: () => void child.kill('SIGKILL'),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}
