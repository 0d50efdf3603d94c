/** Addresses of pages, which carry on the snapshot that the visitor looks at. */
import { html, type Html } from './html.ts'

/** An address with those parameters that have a value. */
export function address(
  path: string,
  parameters: Readonly<Record<string, string | null | undefined>>,
): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, value]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`
}

/** The field of a form that keeps the snapshot; nothing where the newest is looked at. */
export function snapshotField(asOf: string | undefined): Html | null {
  return asOf === undefined ? null : html`<input type="hidden" name="as_of" value="${asOf}" />`
}
