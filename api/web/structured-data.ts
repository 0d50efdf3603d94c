/** Describes the shown snapshot to search engines, in schema.org terms. */
import { LICENCE } from '../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { ViewContext } from './views.ts'

/** schema.org/Dataset as JSON-LD. */
export function structuredData({ snapshot, publisher, origin }: ViewContext): object {
  const url = `${origin}${SNAPSHOTS_PATH}/${snapshot.id}`
  return {
    '@context': 'https://schema.org',
    '@type': 'Dataset',
    name: 'App Rankings',
    description:
      'How many tokens and requests each public app uses on large language models, by day, and the rankings of apps by ' +
      'tokens and by growth. Published each night as an immutable snapshot.',
    url: `${origin}/`,
    identifier: url,
    license: LICENCE.url,
    creator: { '@type': 'Organization', name: publisher, url: origin },
    creditText: snapshot.attribution,
    isAccessibleForFree: true,
    datePublished: snapshot.asOf,
    temporalCoverage: `${snapshot.firstDay}/${snapshot.dataThrough}`,
    distribution: [
      {
        '@type': 'DataDownload',
        name: SNAPSHOT_FILE,
        contentUrl: `${url}/${SNAPSHOT_FILE}`,
        encodingFormat: 'application/vnd.duckdb',
      },
      {
        '@type': 'DataDownload',
        name: 'rankings.csv',
        contentUrl: `${url}/rankings.csv`,
        encodingFormat: 'text/csv',
      },
    ],
  }
}
