/** Detects damaged published files: by their current size, and by their content in the last verification. */
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
  /** Whether a verification found the snapshot's DuckDB file damaged, even while it is open. */
  wasFound(id: string): boolean
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
  const verification = followVerification(dataDir)

  const verified = (id: string, file: string) =>
    verification().broken.find((each) => each.snapshot === id && each.file === file)

  function find(id: string, file: PublishedFile): string | undefined {
    const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
    // A snapshot that was pruned or retracted meanwhile is not damaged.
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

/** The last verification, read again when it changes. */
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
