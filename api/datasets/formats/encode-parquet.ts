import { parquetWriteBuffer, type ColumnSource } from 'hyparquet-writer'
import type { ColumnType } from '../../../pipeline/contract/dataset.ts'
import { integers, texts, type FileMetadata, type Table } from './table.ts'

type SchemaElement = NonNullable<Parameters<typeof parquetWriteBuffer>[0]['schema']>[number]

interface ParquetType {
  readonly element: Omit<SchemaElement, 'name'>
  readonly data: (table: Table, name: string) => ColumnSource['data']
}

const TYPES: Readonly<Record<ColumnType, ParquetType>> = {
  text: { element: { type: 'BYTE_ARRAY', converted_type: 'UTF8' }, data: texts },
  integer: { element: { type: 'INT64' }, data: integers },
  decimal: {
    element: {
      type: 'FIXED_LEN_BYTE_ARRAY',
      type_length: 16,
      converted_type: 'DECIMAL',
      precision: 38,
      scale: 0,
    },
    data: integers,
  },
}

/** Parquet, compressed with Snappy; decimals are decimal(38, 0), the metadata becomes key-value metadata. */
export function encodeParquet(table: Table, metadata: FileMetadata): Buffer {
  const columns = Object.entries(table.columns)
  const bytes = parquetWriteBuffer({
    columnData: columns.map(([name, type]) => ({ name, data: TYPES[type].data(table, name) })),
    schema: [
      { name: 'root', num_children: columns.length },
      ...columns.map(([name, type]) => ({
        name,
        repetition_type: 'REQUIRED' as const,
        ...TYPES[type].element,
      })),
    ],
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
    createdBy: 'app-rankings',
  })
  return Buffer.from(bytes)
}
