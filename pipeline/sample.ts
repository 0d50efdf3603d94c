/** The bundled sample, so that a newcomer's first run has something real to publish. */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CURRENT_POINTER } from './contract.ts'

const SAMPLE_FOLDER = fileURLToPath(new URL('../data/sample/', import.meta.url))

/**
 * Puts the sample into DATA_DIR/raw, if DATA_DIR holds neither a snapshot nor raw usage (CONTRACT 9).
 * Usage comes last and in one rename, so an interrupted copy is simply made again.
 * @returns whether it did.
 */
export function placeSample(dataDir: string): boolean {
  const raw = join(dataDir, 'raw')
  const usage = join(raw, 'usage')
  if (existsSync(join(dataDir, CURRENT_POINTER)) || !isEmpty(usage)) return false
  mkdirSync(raw, { recursive: true })
  const aside = join(raw, '.sample-usage')
  rmSync(aside, { recursive: true, force: true })
  cpSync(join(SAMPLE_FOLDER, 'usage'), aside, { recursive: true })
  cpSync(join(SAMPLE_FOLDER, 'apps'), join(raw, 'apps'), { recursive: true })
  cpSync(join(SAMPLE_FOLDER, 'ATTRIBUTION'), join(raw, 'ATTRIBUTION'))
  rmSync(usage, { recursive: true, force: true })
  renameSync(aside, usage)
  return true
}

function isEmpty(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0
}
