/**
 * Stops a program on a machine that cannot run it, with one line about what is missing. Every entry imports this file
 * first. npm scripts also run it alone before: an older Node.js reads no TypeScript, hence plain JavaScript.
 */
import { readFileSync } from 'node:fs'

/** With fewer, DuckDB and the sockets of a few clients crash the process. */
const LEAST_OPEN_FILES = 64

const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

function findFault() {
  const [running, pinned] = [process.versions.node, dependencies.node]
  if (Number.parseInt(running, 10) < Number.parseInt(pinned, 10)) {
    return (
      `Node.js ${pinned} is missing, and ${running} cannot run this. It comes with the packages, by an install script: ` +
      'run npm rebuild node, or npm ci without --ignore-scripts'
    )
  }
  const files = openFiles()
  if (files < LEAST_OPEN_FILES) {
    return (
      `Only ${files} files may be open at a time; at least ${LEAST_OPEN_FILES} are needed. ` +
      'Raise the limit: ulimit -n 1024, or LimitNOFILE=1024 in the unit'
    )
  }
  return undefined
}

/** Limit of open files of this process. */
function openFiles() {
  process.report.excludeNetwork = true
  const limit = process.report.getReport().userLimits?.open_files.soft
  return typeof limit === 'number' ? limit : Number.POSITIVE_INFINITY
}

const fault = findFault()
if (fault !== undefined) {
  process.stderr.write(`${fault}\n`)
  process.exit(2)
}
