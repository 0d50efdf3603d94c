/** Detects damaged published files by their current size. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { sizeFault, type PublishedFile } from '../../../pipeline/contract/snapshot-record.ts'
import type { Faults } from './faults.ts'

export interface BrokenFiles {
  /** Why a file must not be served, as words after its name; undefined if it may. */
  faultOf(id: string, file: PublishedFile): string | undefined
  /**
   * Checks all files of a snapshot.
   * @throws if its DuckDB file is damaged.
   */
  refuse(id: string, files: readonly PublishedFile[]): void
}

/** The damaged files under `dataDir`; each found one is a fault. */
export function brokenFilesOf(dataDir: string, faults: Faults): BrokenFiles {
  function find(id: string, file: PublishedFile): string | undefined {
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    // A snapshot that was pruned or retracted meanwhile is not damaged.
    if (!existsSync(folder)) return undefined
    return sizeFault(folder, file)
  }

  function faultOf(id: string, file: PublishedFile): string | undefined {
    let fault: string | undefined
    faults.read(`${SNAPSHOTS_FOLDER}/${id}/${file.name}`, messageOf, () => {
      fault = find(id, file)
      if (fault !== undefined) throw new Error(fault)
    })
    return fault
  }

  return {
    faultOf,
    refuse(id, files) {
      const faulty = files.filter((file) => faultOf(id, file) !== undefined)
      if (faulty.some(({ name }) => name === SNAPSHOT_FILE)) {
        throw new Error(
          `${SNAPSHOT_FILE} of ${id} is not what was published: npm run nightly -- verify ${id}`,
        )
      }
    },
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
