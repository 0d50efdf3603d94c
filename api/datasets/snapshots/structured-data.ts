/** Describes a snapshot to search engines in schema.org terms, from its croissant.json. */
import { z } from 'zod'

/** Fields that both vocabularies share. */
const sharedFields = z.object({
  name: z.string(),
  description: z.string(),
  url: z.url(),
  identifier: z.url(),
  license: z.url(),
  creator: z.object({ '@type': z.literal('Organization'), name: z.string(), url: z.url() }),
  publisher: z.object({ '@type': z.literal('Organization'), name: z.string(), url: z.url() }),
  creditText: z.string(),
  keywords: z.array(z.string()),
  inLanguage: z.string(),
  isAccessibleForFree: z.boolean(),
  datePublished: z.string(),
  temporalCoverage: z.string(),
  version: z.string(),
})

const fileSchema = z.object({
  '@type': z.literal('cr:FileObject'),
  name: z.string(),
  /** Relative to the folder; an address in older snapshots. */
  contentUrl: z.string(),
  contentSize: z.string(),
  encodingFormat: z.string(),
  sha256: z.string(),
})

const croissantSchema = sharedFields.extend({
  citeAs: z.string(),
  isBasedOn: z.string().optional(),
  distribution: z.array(z.union([fileSchema, z.object({ '@type': z.literal('cr:FileSet') })])),
})

/** The machine-readable description of a snapshot. */
export interface SnapshotMetadata {
  /** BibTeX. */
  readonly citeAs: string
  /** schema.org/Dataset as JSON-LD. */
  readonly structuredData: object
}

/**
 * The descriptions in a croissant.json.
 * @throws if it is invalid.
 */
export function readCroissant(text: string): SnapshotMetadata {
  const { citeAs, isBasedOn, distribution, ...shared } = croissantSchema.parse(JSON.parse(text))
  const files = distribution.flatMap((each) => (each['@type'] === 'cr:FileObject' ? [each] : []))
  const structuredData = {
    '@context': 'https://schema.org',
    '@type': 'Dataset',
    ...shared,
    // schema.org expects a work or its URL here; the credit lines are text.
    ...(isBasedOn !== undefined && { isBasedOn: { '@type': 'CreativeWork', creditText: isBasedOn } }),
    distribution: files.map((file) => ({
      ...file,
      '@type': 'DataDownload',
      contentUrl: new URL(file.contentUrl, `${shared.identifier}/`).href,
    })),
  }
  return { citeAs, structuredData }
}
