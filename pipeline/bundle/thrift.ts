/**
 * Thrift's compact protocol, in which the footer of a Parquet file is written. What is read is written back as it was,
 * fields of newer versions of the format included.
 */

/** Types of the compact protocol, by their code. */
const TRUE = 1
const FALSE = 2
const I8 = 3
const I16 = 4
const I32 = 5
const I64 = 6
const DOUBLE = 7
const BINARY = 8
const LIST = 9
const SET = 10
const STRUCT = 12

/** Bytes for a binary or a double, a bigint for any integer; a boolean is in the type of its field. */
export type Value = bigint | Uint8Array | List | Struct | undefined

export type List = { readonly type: number; readonly items: readonly Value[] }

export type Field = { readonly id: number; readonly type: number; readonly value: Value }

/** The fields of a struct, in their order. */
export type Struct = { readonly fields: readonly Field[] }

/**
 * Reads the struct at the beginning of `bytes`.
 * @throws RangeError when the bytes end too early or hold a type that Parquet does not use.
 */
export function decodeStruct(bytes: Uint8Array): Struct {
  return new Reader(bytes).struct()
}

/** The bytes of a struct. */
export function encodeStruct(struct: Struct): Uint8Array {
  const writer = new Writer()
  writer.struct(struct)
  return writer.bytes()
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  struct(): Struct {
    const fields: Field[] = []
    let id = 0
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      const type = head & 0x0f
      id = head >> 4 === 0 ? Number(this.#integer()) : id + (head >> 4)
      fields.push({ id, type, value: this.#value(type) })
    }
    return { fields }
  }

  #value(type: number): Value {
    switch (type) {
      case TRUE:
      case FALSE:
        return undefined
      case I8:
        return this.#take(1)
      case I16:
      case I32:
      case I64:
        return this.#integer()
      case DOUBLE:
        return this.#take(8)
      case BINARY:
        return this.#take(Number(this.#varint()))
      case LIST:
      case SET:
        return this.#list()
      case STRUCT:
        return this.struct()
      default:
        throw new RangeError(`unknown Thrift type ${type}`)
    }
  }

  #list(): List {
    const head = this.#byte()
    const type = head & 0x0f
    const length = head >> 4 === 15 ? Number(this.#varint()) : head >> 4
    // Inside a list a boolean is a byte.
    const read = type === TRUE || type === FALSE ? I8 : type
    return { type, items: Array.from({ length }, () => this.#value(read)) }
  }

  #integer(): bigint {
    const zigzag = this.#varint()
    return (zigzag >> 1n) ^ -(zigzag & 1n)
  }

  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  #byte(): number {
    return this.#take(1)[0] ?? 0
  }

  #take(length: number): Uint8Array {
    const taken = this.#bytes.subarray(this.#at, this.#at + length)
    if (taken.length < length) throw new RangeError('the bytes end too early')
    this.#at += length
    return taken
  }
}

class Writer {
  readonly #parts: Uint8Array[] = []

  bytes(): Uint8Array {
    return Buffer.concat(this.#parts)
  }

  struct({ fields }: Struct): void {
    let before = 0
    for (const { id, type, value } of fields) {
      const step = id - before
      if (step > 0 && step < 16) this.#byte((step << 4) | type)
      else {
        this.#byte(type)
        this.#integer(BigInt(id))
      }
      this.#value(type, value)
      before = id
    }
    this.#byte(0)
  }

  #value(type: number, value: Value): void {
    if (value === undefined) return
    if (typeof value === 'bigint') this.#integer(value)
    else if (value instanceof Uint8Array) {
      if (type === BINARY) this.#varint(BigInt(value.length))
      this.#parts.push(value)
    } else if ('fields' in value) this.struct(value)
    else this.#list(value)
  }

  #list({ type, items }: List): void {
    if (items.length < 15) this.#byte((items.length << 4) | type)
    else {
      this.#byte(0xf0 | type)
      this.#varint(BigInt(items.length))
    }
    for (const item of items) this.#value(type, item)
  }

  #integer(value: bigint): void {
    this.#varint(value < 0n ? -2n * value - 1n : 2n * value)
  }

  #varint(value: bigint): void {
    let rest = value
    for (; rest > 0x7fn; rest >>= 7n) this.#byte(Number(rest & 0x7fn) | 0x80)
    this.#byte(Number(rest))
  }

  #byte(value: number): void {
    this.#parts.push(Uint8Array.of(value))
  }
}
