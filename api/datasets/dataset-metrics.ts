/** Metrics of the dataset that is served. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { SnapshotFacts } from './snapshots/open-snapshot.ts'

/** What is told to the metrics of the dataset. */
export interface DatasetMetrics {
  /** A snapshot was opened and is served from now on. */
  snapshotOpened(): void
}

/** What the metrics are made from when they are read. */
interface Observed {
  /** Those of the snapshot served now. */
  readonly facts: () => SnapshotFacts | undefined
  /** Whether the newest snapshot cannot be served. */
  readonly isDegraded: () => boolean
  readonly faults: () => number
}

/** Keeps the metrics of the dataset in `registry`. */
export function createDatasetMetrics(
  registry: Registry,
  { facts, isDegraded, faults }: Observed,
): DatasetMetrics {
  const gauge = (name: string, help: string, value: (now: SnapshotFacts | undefined) => number) => {
    const made: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: () => made.set(value(facts())),
    })
  }
  gauge(
    'dataset_snapshot_timestamp_seconds',
    'When the snapshot served now was computed (as_of), Unix time; 0 while there is none.',
    (now) => secondsOf(now?.asOf),
  )
  gauge(
    'dataset_data_through_timestamp_seconds',
    'Start of the last completed UTC day in the dataset, Unix time; 0 while there is no snapshot.',
    (now) => secondsOf(now?.dataThrough),
  )
  gauge(
    'dataset_days_missing',
    'Days inside the dataset of which no usage was delivered.',
    (now) => now?.daysMissing.length ?? 0,
  )
  gauge('dataset_degraded', '1 while the newest snapshot cannot be served, else 0.', () =>
    Number(isDegraded()),
  )
  gauge(
    'dataset_faults',
    'Published files that are not what was published, and records that cannot be read; /status names them.',
    faults,
  )
  const swaps = new Counter({
    name: 'dataset_snapshots_opened_total',
    help: 'Snapshots opened since the start; each after the first took the place of another.',
    registers: [registry],
  })
  return { snapshotOpened: () => swaps.inc() }
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Date.parse(time) / 1000
}
