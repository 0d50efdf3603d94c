/** The memory that a process holds on to, asked of its inspector: what a metric shows is mostly garbage. */
import { once } from 'node:events'
import { z } from 'zod'

/** For the NODE_OPTIONS of the process. */
export const INSPECTED = '--inspect=127.0.0.1:0'

/** Where the inspector is, in what the process writes to stderr. */
export const INSPECTOR_URL = /Debugger listening on (ws:\S+)/

const usageSchema = z.object({ result: z.object({ usedSize: z.int() }) })

/** Collects the garbage of a process, then gives the bytes of its JavaScript heap. */
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
