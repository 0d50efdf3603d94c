/** The bundled sample, so that a first run publishes real data. */
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RAW_FOLDER } from '../contract/files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { listUsageDays } from './drop-folder.ts'

const SAMPLE = fileURLToPath(new URL('../../data/sample/', import.meta.url))

/**
 * Copies the sample into DATA_DIR/raw if DATA_DIR has no snapshot and no raw usage (CONTRACT 9), without touching existing
 * files.
 * @returns whether it copied the sample.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, RAW_FOLDER)
  if (listSnapshots(dataDir).length > 0 || listUsageDays(raw).length > 0) return false
  mkdirSync(raw, { recursive: true })
  addCredit(join(raw, 'ATTRIBUTION'))
  for (const part of ['apps', 'usage'])
    cpSync(join(SAMPLE, part), join(raw, part), { recursive: true, force: false })
  return true
}

/** The licence of the sample requires its credit line, also below those of the operator. */
function addCredit(path: string): void {
  const credit = readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8')
  const present = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (!present.includes(credit)) appendFileSync(path, present === '' ? credit : `\n${credit}`)
}
