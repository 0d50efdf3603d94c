/** Size and SHA-256 of the files of a bundle. */
import { createHash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

export type FileFacts = {
  readonly name: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

/** Reads a file of `folder` to its end. */
export async function measureFile(folder: string, name: string): Promise<FileFacts> {
  const path = join(folder, name)
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  return { name, bytes: statSync(path).size, sha256: hash.digest('hex') }
}

/** The text of SHA256SUMS, as `sha256sum -c` takes it. */
export function sumsText(files: readonly FileFacts[]): string {
  return files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')
}
