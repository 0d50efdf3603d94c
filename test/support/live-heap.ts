/** The live memory of a process, from its inspector: metrics mostly show garbage. */
import { once } from 'node:events'
import { z } from 'zod'

/** Value for the process's NODE_OPTIONS. */
export const INSPECTED = '--inspect=127.0.0.1:0'

/** The inspector's address in the process's stderr. */
export const INSPECTOR_URL = /Debugger listening on (ws:\S+)/

const usageSchema = z.object({ result: z.object({ usedSize: z.int() }) })

/** Collects a process's garbage, then returns the bytes of its JavaScript heap. */
export async function liveHeapBytes(inspector: string): Promise<number> {
  const socket = new WebSocket(inspector)
  await once(socket, 'open')
  const ask = async (method: string): Promise<unknown> => {
    socket.send(JSON.stringify({ id: 1, method }))
    const [{ data }] = await once(socket, 'message')
    return JSON.parse(String(data))
  }
  await ask('HeapProfiler.collectGarbage')
  const { result } = usageSchema.parse(await ask('Runtime.getHeapUsage'))
  socket.close()
  return result.usedSize
}
