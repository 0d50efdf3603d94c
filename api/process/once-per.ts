/**
 * What follows from the time alone, and only from the part of it that changes once in `unitMs` milliseconds: `make` is
 * asked for it once in each of them.
 */
export function createOncePer<Value>(unitMs: number, make: (time: number) => Value): (time: number) => Value {
  let made: { readonly unit: number; readonly value: Value } | undefined
  return (time) => {
    const unit = Math.floor(time / unitMs)
    if (made?.unit !== unit) made = { unit, value: make(time) }
    return made.value
  }
}
