/** A pseudo-terminal, on machines with a program for it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from './api.ts'
import { REPOSITORY } from './processes.ts'
import { hasProgram } from './programs.ts'

export const HAS_TERMINAL = process.platform === 'linux' && hasProgram('script')

/** Runs a shell's `command` on a terminal; `using` closes it. */
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
     * The new screen output since the last call, once `pattern` is in it.
     * @throws {Error} with the output if the command ends without it.
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
    /** Closes the terminal while the command runs, like closing its window. */
    close: () => void child.kill('SIGKILL'),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}
