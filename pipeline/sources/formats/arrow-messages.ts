/** Splits an Arrow IPC file, of either form, into its messages. */
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { DataError } from '../../errors.ts'
import type { RawFile } from '../drop-folder.ts'

const FILE_MAGIC = Buffer.from('ARROW1')
/** The magic and its padding. */
const FILE_START_BYTES = 8
const STREAM_END = Buffer.from('ffffffff00000000', 'hex')
/** Metadata version of format 0.14 and earlier. */
const LEGACY_STREAM_END = STREAM_END.subarray(4)
const CONTINUATION = 0xff_ff_ff_ff

/** Positions of two fields in the format's table Message. */
const HEADER_TYPE = 6
const BODY_LENGTH = 10

const SCHEMA = 1
const RECORDS = 3

export type ArrowMessage = {
  readonly isSchema: boolean
  readonly isRecords: boolean
  /** The whole message: length, metadata and body. */
  readonly bytes: Buffer
}

/**
 * The messages of a file. The stream form is one or more streams in a row; the file form is a stream between two marks,
 * followed by a footer.
 * @throws DataError if the file is truncated or not Arrow.
 */
export async function* readMessages(file: RawFile): AsyncGenerator<ArrowMessage> {
  const handle = await open(file.path)
  try {
    const { size } = await handle.stat()
    const start = await readAt(handle, 0, FILE_MAGIC.length)
    const isFile = start.equals(FILE_MAGIC)
    const end = await readAt(handle, Math.max(0, size - STREAM_END.length), STREAM_END.length)
    if (!end.subarray(-endOf(start).length).equals(endOf(start))) throw notWhole(file)
    let position = isFile ? FILE_START_BYTES : 0
    let isEnded = false
    while (position < size) {
      const head = await readHead(handle, position, size)
      isEnded = head.metadata.length === 0
      if (isEnded && isFile) return
      const bytes = await readAt(handle, position, head.length)
      if (!isEnded) yield { ...kindOf(head.metadata), bytes }
      position += head.length
    }
    // A stream cut between two messages looks complete, and a message's last bytes may look like an end mark.
    if (!isEnded) throw notWhole(file)
  } finally {
    await handle.close()
  }
}

/** The final bytes of a file with this beginning. */
function endOf(start: Buffer): Buffer {
  if (start.equals(FILE_MAGIC)) return FILE_MAGIC
  return start.subarray(0, 4).equals(STREAM_END.subarray(0, 4)) ? STREAM_END : LEGACY_STREAM_END
}

function notWhole({ name }: RawFile): DataError {
  return new DataError(`${name} is not a whole Arrow IPC file: its end mark is missing`)
}

/** Returns fewer bytes at the end of the file. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

/** The metadata of the message at a position (empty at the end of a stream), and the length of the whole message. */
async function readHead(
  handle: FileHandle,
  position: number,
  size: number,
): Promise<{ metadata: Buffer; length: number }> {
  const start = await readAt(handle, position, STREAM_END.length)
  // Before format 0.15, the length had no mark before it.
  const prefix = start.readUInt32LE(0) === CONTINUATION ? 8 : 4
  const metadataLength = start.readUInt32LE(prefix - 4)
  requireInside(prefix + metadataLength, size - position)
  const metadata = await readAt(handle, position + prefix, metadataLength)
  const bodyLength = metadataLength === 0 ? 0n : (fieldOf(metadata, BODY_LENGTH)?.readBigInt64LE(0) ?? 0n)
  const length = prefix + metadataLength + Number(bodyLength)
  requireInside(length, size - position)
  return { metadata, length }
}

function requireInside(length: number, left: number): void {
  if (length < 0 || length > left) throw new Error('a message is longer than the file')
}

function kindOf(metadata: Buffer): { isSchema: boolean; isRecords: boolean } {
  const type = fieldOf(metadata, HEADER_TYPE)?.readUInt8(0)
  return { isSchema: type === SCHEMA, isRecords: type === RECORDS }
}

/** Position of a field's value in a flatbuffers table. */
function fieldOf(metadata: Buffer, place: number): Buffer | undefined {
  const table = metadata.readInt32LE(0)
  const offsets = table - metadata.readInt32LE(table)
  const offset = place < metadata.readUInt16LE(offsets) ? metadata.readUInt16LE(offsets + place) : 0
  return offset === 0 ? undefined : metadata.subarray(table + offset)
}
