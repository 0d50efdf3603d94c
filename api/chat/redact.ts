/** Prepares messages of providers for the log: short and without keys, which some providers repeat. */
const CHARACTERS = 200
const SECRET_CHARACTERS = 6
/** Keys of any provider: after a known prefix, partly starred, or a long run of letters and digits. */
const KEYS =
  /\b(?:bearer\s+\S+|(?:sk|pk|key|gsk|xai|hf|nvapi|AIza)[-_*]?[\w*.-]{6,}|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,})|\S*\*{3,}\S*/gi

/** The message without the values of `headers`, which hold the key, and without any other likely key. */
export function redact(message: string, headers: Readonly<Record<string, string>>): string {
  const secrets = Object.values(headers)
    .flatMap((value) => [value, value.replace(/^\w+ +/, '')])
    .filter((value) => value.length >= SECRET_CHARACTERS)
  const known = secrets.reduce((text, secret) => text.replaceAll(secret, '[key]'), message)
  const clean = known.replaceAll(KEYS, '[key]')
  return clean.length > CHARACTERS ? `${clean.slice(0, CHARACTERS)}…` : clean
}
