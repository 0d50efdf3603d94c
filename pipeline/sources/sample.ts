/** The bundled sample, so that a first run publishes real data. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RAW_FOLDER } from '../contract/files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { listUsageDays } from './drop-folder.ts'

const SAMPLE = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/**
 * Copies the sample into DATA_DIR/raw if DATA_DIR has no snapshot and no raw usage (CONTRACT 9), without touching existing
 * files. The copy is made aside, and removed once every file is in place: while it is there, repeating completes the sample.
 * @returns whether it copied the sample.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, RAW_FOLDER)
  const aside = join(raw, '.sample')
  const present = listUsageDays(raw).flatMap(({ files }) => files.map(({ name }) => name))
  const isSample = existsSync(aside) && present.every((name) => existsSync(join(SAMPLE, name)))
  if (listSnapshots(dataDir).length > 0 || (present.length > 0 && !isSample)) return false
  for (const part of ['apps', 'usage']) cpSync(join(SAMPLE, part), join(aside, part), { recursive: true })
  addCredit(join(raw, 'ATTRIBUTION'))
  for (const name of globSync('*/**/*.csv', { cwd: aside })) {
    mkdirSync(dirname(join(raw, name)), { recursive: true })
    if (!existsSync(join(raw, name))) renameSync(join(aside, name), join(raw, name))
  }
  rmSync(aside, { recursive: true })
  return true
}

/** The licence of the sample requires its credit line, also below those of the operator. */
function addCredit(path: string): void {
  const credit = readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8')
  const present = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (!present.includes(credit)) appendFileSync(path, present === '' ? credit : `\n${credit}`)
}
