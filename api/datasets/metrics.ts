/** Metrics of the served dataset. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { SnapshotFacts } from './snapshots/facts.ts'

/** The state that the metrics read. */
interface Observed {
  /** The facts of the served snapshot. */
  readonly facts: () => SnapshotFacts | undefined
  /** Whether the newest snapshot cannot be served. */
  readonly isDegraded: () => boolean
  readonly faults: () => number
}

/** Keeps the metrics of the dataset in `registry`; returns the counter of opened snapshots. */
export function createDatasetMetrics(
  registry: Registry,
  { facts, isDegraded, faults }: Observed,
): Pick<Counter, 'inc'> {
  const gauge = (name: string, help: string, value: () => number) => {
    const made: Gauge = new Gauge({ name, help, registers: [registry], collect: () => made.set(value()) })
  }
  gauge(
    'dataset_snapshot_timestamp_seconds',
    'Time the served snapshot was computed (as_of), Unix time; 0 without a snapshot.',
    () => secondsOf(facts()?.asOf),
  )
  gauge(
    'dataset_data_through_timestamp_seconds',
    'Start of the last completed UTC day in the dataset, Unix time; 0 without a snapshot.',
    () => secondsOf(facts()?.dataThrough),
  )
  gauge(
    'dataset_days_missing',
    'Days inside the dataset without delivered usage.',
    () => facts()?.daysMissing.length ?? 0,
  )
  gauge('dataset_degraded', '1 while the newest snapshot cannot be served, else 0.', () =>
    Number(isDegraded()),
  )
  gauge('dataset_faults', 'Damaged published files and unreadable records; /status lists them.', faults)
  return new Counter({
    name: 'dataset_snapshots_opened_total',
    help: 'Snapshots opened since the start; each after the first replaced another.',
    registers: [registry],
  })
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Date.parse(time) / 1000
}
