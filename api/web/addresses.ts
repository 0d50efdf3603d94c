/** Addresses of pages; they keep the visitor's snapshot. */
import { html, type Html } from './html.ts'

/** An address with the parameters that have a value. */
export function address(
  path: string,
  parameters: Readonly<Record<string, string | null | undefined>>,
): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, value]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`
}

/** The form field that keeps the snapshot; null for the newest. */
export function snapshotField(asOf: string | undefined): Html | null {
  return asOf === undefined ? null : html`<input type="hidden" name="as_of" value="${asOf}" />`
}
