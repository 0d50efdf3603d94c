/** Checksums of files: SHA-256 and size. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { PublishedFile } from '../contract/snapshot-record.ts'

const READ_AT_ONCE = 1 << 20

/** Reads a file of `folder` to its end, synchronously: a stream takes twice as long. */
export function measureFile(folder: string, name: string): PublishedFile {
  using files = new DisposableStack()
  const file = files.adopt(openSync(join(folder, name), 'r'), closeSync)
  const hash = createHash('sha256')
  const piece = Buffer.alloc(READ_AT_ONCE)
  let bytes = 0
  for (let length = readSync(file, piece); length > 0; length = readSync(file, piece)) {
    hash.update(piece.subarray(0, length))
    bytes += length
  }
  return { name, bytes, sha256: hash.digest('hex') }
}
