/** How a snapshot describes itself to search engines, in the words of schema.org, from its croissant.json. */
import { z } from 'zod'

/** What both vocabularies call alike. */
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
  contentUrl: z.url(),
  contentSize: z.string(),
  encodingFormat: z.string(),
  sha256: z.string(),
})

const croissantSchema = sharedFields.extend({
  citeAs: z.string(),
  isBasedOn: z.string().optional(),
  distribution: z.array(z.union([fileSchema, z.object({ '@type': z.literal('cr:FileSet') })])),
})

/** How a snapshot describes itself to machines. */
export interface SnapshotMetadata {
  /** BibTeX. */
  readonly citeAs: string
  /** schema.org/Dataset as JSON-LD. */
  readonly structuredData: object
}

/**
 * The descriptions in a croissant.json.
 * @throws when it is none.
 */
export function readCroissant(text: string): SnapshotMetadata {
  const { citeAs, isBasedOn, distribution, ...shared } = croissantSchema.parse(JSON.parse(text))
  const files = distribution.flatMap((each) => (each['@type'] === 'cr:FileObject' ? [each] : []))
  const structuredData = {
    '@context': 'https://schema.org',
    '@type': 'Dataset',
    ...shared,
    // schema.org wants a work here, or its URL; the credit lines are text.
    ...(isBasedOn !== undefined && { isBasedOn: { '@type': 'CreativeWork', creditText: isBasedOn } }),
    distribution: files.map((file) => ({ ...file, '@type': 'DataDownload' })),
  }
  return { citeAs, structuredData }
}
