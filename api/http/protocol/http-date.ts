const FIXDATE = /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850 = /^\w+day, \d{2}-\w{3}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME = /^\w{3} \w{3} [\d ]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** An HTTP date in one of its three forms (RFC 9110, 5.6.7), ms since 1970; undefined for anything else. */
export function httpDate(text: string): number | undefined {
  if (!FIXDATE.test(text) && !RFC_850.test(text) && !ASCTIME.test(text)) return undefined
  const time = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text)
  return Number.isNaN(time) ? undefined : time
}
