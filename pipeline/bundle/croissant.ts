/** croissant.json: describes the bundle in Croissant 1.1 (mlcommons.org/croissant). */
import type { PublishedFile } from '../contract/snapshot-record.ts'
import { SUMMARY } from '../contract/dataset.ts'
import { TITLE, bibtex, type Description } from './description.ts'
import type { TableFile } from './tables.ts'

/** The terms of Croissant's own vocabulary; all others belong to schema.org. */
const TERMS =
  'arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet format ' +
  'includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace ' +
  'samplingRate separator source subField transform'

/**
 * The whole context of Croissant 1.1, for readers without JSON-LD. The reference implementation, mlcroissant, accepts
 * schema.org by https alone, although the specification prints http.
 */
const CONTEXT = {
  '@language': 'en',
  '@vocab': 'https://schema.org/',
  sc: 'https://schema.org/',
  cr: 'http://mlcommons.org/croissant/',
  rai: 'http://mlcommons.org/croissant/RAI/',
  dct: 'http://purl.org/dc/terms/',
  prov: 'http://www.w3.org/ns/prov#',
  conformsTo: 'dct:conformsTo',
  name: { '@container': '@language' },
  description: { '@container': '@language' },
  data: { '@id': 'cr:data', '@type': '@json' },
  dataType: { '@id': 'cr:dataType', '@type': '@vocab' },
  examples: { '@id': 'cr:examples', '@type': '@json' },
  ...Object.fromEntries(TERMS.split(' ').map((term) => [term, `cr:${term}`])),
}

/** Media types that Croissant's readers accept: not the registered one of Parquet. */
const [PARQUET, DUCKDB] = ['application/x-parquet', 'application/octet-stream']

/**
 * The JSON-LD document. It names the files relative to itself: the folder is read without a network. Each month is a record
 * set of its own: mlcroissant 1.1 reads the columns of a file set from a local folder only; of a set contained in files with
 * addresses it gives the names.
 * @param tables the files of the tables.
 */
export function croissant(
  description: Description,
  database: PublishedFile,
  tables: readonly TableFile[],
): object {
  const { meta, homepage } = description
  const publisher = { '@type': 'Organization', name: meta.publisher, url: homepage }
  const parquet = tables.filter(({ name }) => name.endsWith('.parquet'))
  return {
    '@context': CONTEXT,
    '@type': 'sc:Dataset',
    'dct:conformsTo': 'http://mlcommons.org/croissant/1.1',
    name: TITLE,
    description: `${SUMMARY} ${meta.comparability}`,
    url: homepage,
    identifier: description.address,
    license: meta.licence_url,
    creator: publisher,
    publisher,
    creditText: meta.attribution,
    citeAs: bibtex(description),
    keywords: ['large language models', 'AI apps', 'token usage', 'rankings'],
    inLanguage: 'en',
    isAccessibleForFree: true,
    datePublished: meta.as_of,
    temporalCoverage: `${meta.first_day}/${meta.data_through}`,
    version: description.version,
    ...(meta.sources !== null && { isBasedOn: meta.sources }),
    distribution: [fileObject(database, DUCKDB), ...parquet.map((file) => fileObject(file, PARQUET))],
    recordSet: parquet.map(recordSet),
  }
}

function fileObject({ name, bytes, sha256 }: PublishedFile, encodingFormat: string): object {
  const size = { contentSize: `${bytes} B`, encodingFormat, sha256 }
  return { '@type': 'cr:FileObject', '@id': name, name, contentUrl: name, ...size }
}

/** The rows of a table, or of one month of it. */
function recordSet({ name: file, month, table }: TableFile): object {
  const { name, description, fields, primaryKey = [] } = table
  const id = month === undefined ? name : `${name}/${month}`
  return {
    '@type': 'cr:RecordSet',
    '@id': id,
    name: id,
    description,
    ...(primaryKey.length > 0 && { key: primaryKey.map((column) => ({ '@id': `${id}/${column}` })) }),
    field: fields.map(({ name: column, type, description: meaning }) => ({
      '@type': 'cr:Field',
      '@id': `${id}/${column}`,
      name: column,
      description: meaning,
      dataType: dataType(type),
      ...(type.endsWith('[]') && { isArray: true, arrayShape: '-1' }),
      source: { fileObject: { '@id': file }, extract: { column } },
    })),
  }
}

function dataType(type: string): string {
  if (type === 'DATE') return 'sc:Date'
  if (type === 'TIMESTAMP WITH TIME ZONE') return 'sc:DateTime'
  return type.startsWith('VARCHAR') ? 'sc:Text' : 'sc:Integer'
}
