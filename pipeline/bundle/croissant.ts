/** croissant.json: describes the bundle in Croissant 1.1 (mlcommons.org/croissant). */
import type { DataFile } from './data-file.ts'
import { MEDIA_TYPES } from './data-package.ts'
import { bibtex } from './description.ts'
import type { DescribedTable, Description, Field } from './description.ts'
import { MONTHLY_TABLES } from '../contract/files.ts'
import { fileName, isMonthly } from './tables.ts'

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

/** Media types that Croissant's readers accept: not the registered one of Parquet; .gz is recognised by the name. */
const ENCODING_FORMATS = { ...MEDIA_TYPES, parquet: 'application/x-parquet', 'csv.gz': MEDIA_TYPES.csv }

/** The JSON-LD document; `files` are the data files of the bundle. */
export function croissant(description: Description, files: readonly DataFile[]): object {
  const { meta } = description
  const publisher = { '@type': 'Organization', name: meta.publisher, url: description.homepage }
  return {
    '@context': CONTEXT,
    '@type': 'sc:Dataset',
    'dct:conformsTo': 'http://mlcommons.org/croissant/1.1',
    name: description.title,
    description: `${description.summary} ${meta.comparability}`,
    url: description.homepage,
    identifier: description.address,
    license: meta.licence_url,
    creator: publisher,
    publisher,
    creditText: meta.attribution,
    citeAs: bibtex(description),
    keywords: description.keywords,
    inLanguage: 'en',
    isAccessibleForFree: true,
    datePublished: meta.as_of,
    temporalCoverage: `${meta.first_day}/${meta.data_through}`,
    version: description.version,
    ...(meta.sources === null ? {} : { isBasedOn: meta.sources }),
    distribution: [...files.map((file) => fileObject(description, file)), ...MONTHLY_TABLES.map(monthsOf)],
    recordSet: description.tables.map(recordSet),
  }
}

/** The monthly Parquet files of a table as one record source. */
function monthsOf(table: string): object {
  return {
    '@type': 'cr:FileSet',
    '@id': monthsId(table),
    name: monthsId(table),
    encodingFormat: ENCODING_FORMATS.parquet,
    includes: `${table}/*.parquet`,
  }
}

function monthsId(table: string): string {
  return `${table}-months`
}

function fileObject({ address }: Description, { name, bytes, sha256, format }: DataFile): object {
  return {
    '@type': 'cr:FileObject',
    '@id': name,
    name,
    contentUrl: `${address}/${name}`,
    contentSize: `${bytes} B`,
    encodingFormat: ENCODING_FORMATS[format],
    sha256,
  }
}

function recordSet(table: DescribedTable): object {
  const source = sourceOf(table)
  return {
    '@type': 'cr:RecordSet',
    '@id': table.name,
    name: table.name,
    description: table.description,
    ...(table.primaryKey === undefined
      ? {}
      : { key: table.primaryKey.map((column) => ({ '@id': `${table.name}/${column}` })) }),
    field: table.fields.map((field) => describeField(table, field, source)),
  }
}

function sourceOf(table: DescribedTable): object {
  if (isMonthly(table)) return { fileSet: { '@id': monthsId(table.name) } }
  const [format = 'csv'] = table.formats
  return { fileObject: { '@id': fileName(table, format) } }
}

function describeField(table: DescribedTable, { name, type, description }: Field, source: object): object {
  const refers = table.refersToApps === true && name === 'app_id'
  return {
    '@type': 'cr:Field',
    '@id': `${table.name}/${name}`,
    name,
    description,
    dataType: dataType(type),
    ...(type.endsWith('[]') ? { isArray: true, arrayShape: '-1' } : {}),
    source: { ...source, extract: { column: name } },
    ...(refers ? { references: { field: { '@id': 'apps/app_id' } } } : {}),
  }
}

function dataType(type: string): string {
  if (type === 'DATE') return 'sc:Date'
  if (type === 'TIMESTAMP WITH TIME ZONE') return 'sc:DateTime'
  return type.startsWith('VARCHAR') ? 'sc:Text' : 'sc:Integer'
}
