/** croissant.json over HTTP: the file of the snapshot with whole addresses, which its readers need where there is no folder. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Request } from 'express'
import { CROISSANT_FILE, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import type { Reply } from '../../http/call.ts'
import { sendOpen } from './open-reply.ts'

export const CROISSANT_TYPE = 'application/ld+json; profile="http://mlcommons.org/croissant/1.1"'

const RELATIVE_URL = /"contentUrl": "(?!https?:)/g

/** Sends the description of the snapshot in `folder`; the origin is the one that the request names. */
export async function sendCroissant(
  request: Request,
  reply: Reply,
  { id, folder }: { readonly id: string; readonly folder: string },
): Promise<void> {
  const text = await readFile(join(folder, CROISSANT_FILE), 'utf8')
  const address = `${request.protocol}://${request.host}${SNAPSHOTS_PATH}/${id}/`
  const whole = text.replaceAll(RELATIVE_URL, () => `"contentUrl": "${encodeURI(address)}`)
  await sendOpen(request, reply, CROISSANT_TYPE, whole)
}
