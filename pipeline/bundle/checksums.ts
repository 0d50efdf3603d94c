/** Checksums of files: SHA-256 and size. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

const READ_AT_ONCE = 1 << 20

export type FileFacts = {
  readonly name: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

/** Reads a file of `folder` to its end. */
export function measureFile(folder: string, name: string): FileFacts {
  const hash = createHash('sha256')
  let bytes = 0
  for (const piece of piecesOf(join(folder, name))) {
    hash.update(piece)
    bytes += piece.length
  }
  return { name, bytes, sha256: hash.digest('hex') }
}

/** Reads synchronously to the end: a stream takes twice as long. */
function* piecesOf(path: string): Generator<Uint8Array> {
  using files = new DisposableStack()
  const file = files.adopt(openSync(path, 'r'), closeSync)
  const piece = Buffer.alloc(READ_AT_ONCE)
  for (let length = readSync(file, piece); length > 0; length = readSync(file, piece)) {
    yield piece.subarray(0, length)
  }
}

/** The text of SHA256SUMS, in the form of `sha256sum -c`. */
export function sumsText(files: readonly FileFacts[]): string {
  return files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')
}
