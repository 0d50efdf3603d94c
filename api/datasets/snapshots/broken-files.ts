/** Which published files are not what was published: by their size now, by their content when they were verified last. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { sizeFault, type PublishedFile } from '../../../pipeline/contract/snapshot-record.ts'
import {
  readVerification,
  VERIFICATION_FILE,
  type Verification,
} from '../../../pipeline/contract/verification.ts'
import type { Faults } from './faults.ts'

export interface BrokenFiles {
  verification(): Verification
  /** Whether a verification found the DuckDB file of the snapshot broken, maybe while it is open. */
  wasFound(id: string): boolean
  /** Why a file may not be handed out, as words after its name; undefined while it may. */
  faultOf(id: string, file: PublishedFile): string | undefined
  /**
   * Looks at all files of a snapshot.
   * @throws when its DuckDB file is not what was published.
   */
  refuse(id: string, files: readonly PublishedFile[]): void
}

/** The broken files under `dataDir`; each that is met is a fault. */
export function brokenFilesOf(dataDir: string, faults: Faults): BrokenFiles {
  const verification = followVerification(dataDir)

  const verified = (id: string, file: string) =>
    verification().broken.find((each) => each.snapshot === id && each.file === file)

  function find(id: string, file: PublishedFile): string | undefined {
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    // What was pruned or retracted meanwhile is not broken.
    if (!existsSync(folder)) return undefined
    return sizeFault(folder, file) ?? verified(id, file.name)?.fault
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
    verification,
    wasFound: (id) => verified(id, SNAPSHOT_FILE) !== undefined,
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

/** The last verification, read again when there is another. */
function followVerification(dataDir: string): () => Verification {
  const path = join(dataDir, VERIFICATION_FILE)
  let read: { readonly changedAt: number; readonly verification: Verification } | undefined
  return () => {
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (read?.changedAt !== changedAt) read = { changedAt, verification: readVerification(dataDir) }
    return read.verification
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
