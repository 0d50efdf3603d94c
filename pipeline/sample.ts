/** The bundled sample, so that a newcomer's first run has something real to publish. */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listSnapshots } from './snapshots.ts'

const SAMPLE_FOLDER = fileURLToPath(new URL('../data/sample/', import.meta.url))

/** What the sample is made of. */
const PARTS = ['ATTRIBUTION', 'apps', 'usage'] as const

/**
 * Puts the sample into DATA_DIR/raw, if DATA_DIR holds no snapshot and nothing raw (CONTRACT 9). It is copied aside
 * first, and the copy is gone only when all of it is in its place: an interrupted one is simply made again. Nothing
 * that is there already is touched.
 * @returns whether it did.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, 'raw')
  const aside = join(raw, '.sample')
  if (listSnapshots(dataDir).length > 0) return false
  if (!existsSync(aside) && holdsFiles(raw)) return false
  rmSync(aside, { recursive: true, force: true })
  mkdirSync(aside, { recursive: true })
  for (const part of PARTS) cpSync(join(SAMPLE_FOLDER, part), join(aside, part), { recursive: true })
  for (const part of PARTS) {
    const place = join(raw, part)
    if (holdsFiles(place)) continue
    rmSync(place, { recursive: true, force: true })
    renameSync(join(aside, part), place)
  }
  rmSync(aside, { recursive: true })
  return true
}

/** Whether this is a file, or a folder with a file anywhere below it. */
function holdsFiles(path: string): boolean {
  if (!existsSync(path)) return false
  if (!statSync(path).isDirectory()) return true
  return readdirSync(path, { recursive: true, withFileTypes: true }).some((entry) => !entry.isDirectory())
}
