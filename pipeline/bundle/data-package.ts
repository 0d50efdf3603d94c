/** datapackage.json: describes the bundle in Data Package 2 (datapackage.org). */
import type { DataFile, TableFile } from './data-file.ts'
import type { DescribedTable, Description, Field } from './description.ts'
import { LIST_DELIMITER } from './table-files.ts'
import type { FileFormat } from './tables.ts'

/** Name of the descriptor in a snapshot. */
export const DESCRIPTOR_FILE = 'datapackage.json'

/** Media types of the data files. */
export const MEDIA_TYPES: Record<FileFormat | 'duckdb', string> = {
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv',
  'csv.gz': 'application/gzip',
  duckdb: 'application/octet-stream',
}

/** The descriptor as plain JSON; `files` are the data files of the bundle. */
export function dataPackage(description: Description, files: readonly DataFile[]): object {
  const { meta } = description
  return {
    $schema: 'https://datapackage.org/profiles/2.0/datapackage.json',
    name: 'app-rankings',
    id: description.address,
    title: description.title,
    description: `${description.summary} ${meta.comparability}`,
    homepage: description.homepage,
    version: description.version,
    created: meta.as_of,
    keywords: description.keywords,
    licenses: [{ name: meta.licence, path: meta.licence_url, title: 'Creative Commons Attribution 4.0' }],
    contributors: [{ title: meta.publisher, roles: ['publisher'] }],
    ...(meta.sources === null ? {} : { sources: [{ title: meta.sources }] }),
    // An extension that the specification allows: it tells snapshots apart.
    snapshot: {
      id: description.snapshot,
      as_of: meta.as_of,
      first_day: meta.first_day,
      data_through: meta.data_through,
      schema: meta.version,
      days_restated: meta.days_restated,
      publisher: meta.publisher,
      attribution: meta.attribution,
      total_requests: meta.total_requests,
      total_tokens: meta.total_tokens,
    },
    resources: files.map(resource),
  }
}

const CSV_FACTS = {
  format: 'csv',
  // Version 1's spelling of `type: table`: version 2 accepts both, R's frictionless (1.3) only this one.
  profile: 'tabular-data-resource',
  encoding: 'utf-8',
  dialect: { lineTerminator: '\n' },
}

/** Properties of a file that follow from its format. */
const FORMAT_FACTS: Readonly<Record<FileFormat, object>> = {
  parquet: { format: 'parquet' },
  csv: CSV_FACTS,
  'csv.gz': { ...CSV_FACTS, compression: 'gz' },
}

function resource(file: DataFile): object {
  const { name: path, bytes, sha256, format } = file
  const facts = { mediatype: MEDIA_TYPES[format], bytes, hash: `sha256:${sha256}` }
  if (format === 'duckdb') return { name: 'app-rankings-duckdb', path, format, ...facts }
  const { table, month, rows, fingerprint } = file
  return {
    name: resourceName(file),
    type: 'table',
    path,
    title: month === undefined ? table.title : `${table.title}, ${month}`,
    description: table.description,
    ...facts,
    ...FORMAT_FACTS[format],
    rows,
    // An extension: with it the next snapshot decides whether it can share the file.
    ...(fingerprint === undefined ? {} : { fingerprint }),
    schema: tableSchema(table, format),
  }
}

/** The name of a partition's resource, such as app-daily-2026-08-parquet. */
function resourceName({ table, month, format }: Pick<TableFile, 'table' | 'month' | 'format'>): string {
  return [table.name.replaceAll('_', '-'), month, nameOf(format)]
    .filter((part) => part !== undefined)
    .join('-')
}

/** A format as part of a resource name, which has no dots. */
function nameOf(format: FileFormat): string {
  return format === 'parquet' ? 'parquet' : 'csv'
}

function tableSchema(table: DescribedTable, format: FileFormat): object {
  return {
    fields: table.fields.map((field) => describeField(field, format)),
    missingValues: [''],
    ...(table.primaryKey === undefined ? {} : { primaryKey: table.primaryKey }),
    ...(table.refersToApps === true
      ? {
          foreignKeys: [
            {
              fields: ['app_id'],
              reference: { resource: `apps-${nameOf(format)}`, fields: ['app_id'] },
            },
          ],
        }
      : {}),
  }
}

function describeField({ name, type, description, nullable }: Field, format: FileFormat): object {
  const constraints = nullable ? {} : { constraints: { required: true } }
  if (type === 'VARCHAR[]') {
    // The specification has a type `list` for such cells; its published JSON schema lacks it.
    return format !== 'parquet'
      ? { name, type: 'string', description: `${description} Separated by "${LIST_DELIMITER}".` }
      : { name, type: 'array', description, ...constraints }
  }
  return { name, type: fieldType(type), description, ...constraints }
}

/** An integer stays an integer at any width: DECIMAL(38,0) holds token totals. */
function fieldType(type: string): string {
  if (type === 'DATE') return 'date'
  if (type === 'TIMESTAMP WITH TIME ZONE') return 'datetime'
  return type === 'VARCHAR' ? 'string' : 'integer'
}
