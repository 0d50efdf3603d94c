/**
 * DuckDB reads Parquet times in nanoseconds exactly, but cuts those with a time zone to microseconds: rows with one
 * request_id would tie. A copy with times declared as without zone has the same instants, since both are UTC.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { constants, copyFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { scratchPath } from '../../duckdb/scratch.ts'
import type { RawFile } from '../drop-folder.ts'

/** The end of a file: length of the footer, and magic. */
const TAIL_BYTES = 8
const MAGIC = Buffer.from('PAR1')

/** The type in the footer, in Thrift's compact protocol: the zone flag, then the unit of nanoseconds. */
const WITH_ZONE = Buffer.from('8c111c3c00000000', 'hex')
const WITHOUT_ZONE = Buffer.from('8c121c3c00000000', 'hex')

/** Only the precedence among rows with a request_id needs nanoseconds. */
const REQUEST_ID = 'request_id'

/** Runs `work` with the files, or with copies that DuckDB reads exactly; removes the copies. */
export async function withExactTimes<T>(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  work: (exact: readonly RawFile[]) => Promise<T>,
): Promise<T> {
  const copies: string[] = []
  try {
    const exact: RawFile[] = []
    for (const file of files) {
      const footer = await readFooter(file)
      const mended = footer && withoutZones(footer.bytes)
      if (footer === undefined || mended === undefined) exact.push(file)
      else {
        const path = await scratchPath(connection)
        copies.push(path)
        await copyWithFooter(file, path, { ...footer, bytes: mended })
        exact.push({ ...file, path })
      }
    }
    return await work(exact)
  } finally {
    for (const path of copies) rmSync(path, { force: true })
  }
}

type Footer = { readonly at: number; readonly bytes: Buffer }

/** Undefined if the file cannot be read, which its reader reports. */
async function readFooter({ path }: RawFile): Promise<Footer | undefined> {
  try {
    await using handle = await open(path)
    const { size } = await handle.stat()
    const tail = await handle.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, size - TAIL_BYTES)
    const length = tail.buffer.readUInt32LE(0)
    const at = size - TAIL_BYTES - length
    if (at < 0 || !tail.buffer.subarray(-MAGIC.length).equals(MAGIC)) return undefined
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, at)
    return { at, bytes: buffer }
  } catch {
    return undefined
  }
}

function withoutZones(footer: Buffer): Buffer | undefined {
  if (!footer.includes(WITH_ZONE) || !footer.toString('latin1').toLowerCase().includes(REQUEST_ID)) {
    return undefined
  }
  const mended = Buffer.from(footer)
  for (let at = mended.indexOf(WITH_ZONE); at >= 0; at = mended.indexOf(WITH_ZONE, at)) {
    WITHOUT_ZONE.copy(mended, at)
  }
  return mended
}

async function copyWithFooter({ path: from }: RawFile, to: string, footer: Footer): Promise<void> {
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  await using handle = await open(to, 'r+')
  await handle.write(footer.bytes, 0, footer.bytes.length, footer.at)
}
