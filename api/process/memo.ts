/** Gives what was worked out for a key before, or works it out. What is thrown is not remembered. */
export type Memo<Value> = (key: string, work: () => Value) => Value

/** Longer keys are not worth the memory: what a client may send is much longer. */
const KEY_CHARACTERS = 500

/** Remembers the newest `atMost` values; each must follow from its key alone. */
export function createMemo<Value>(atMost: number): Memo<Value> {
  const known = new Map<string, { readonly value: Value }>()
  return (key, work) => {
    const remembered = known.get(key)
    if (remembered !== undefined) return remembered.value
    const value = work()
    if (key.length > KEY_CHARACTERS) return value
    const [oldest] = known.keys()
    if (known.size >= atMost && oldest !== undefined) known.delete(oldest)
    known.set(key, { value })
    return value
  }
}
