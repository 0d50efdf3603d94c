// Reads a JSON report of vitest: prints the numbers of passed and failed tests to stdout, and each failure to stderr.
import { readFileSync } from 'node:fs'

const MESSAGE_CHARACTERS = 4000

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'))
// A file that could not be loaded has no tests, and counts as one failure.
const unloaded = report.testResults.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
)
process.stdout.write(`${report.numPassedTests} ${report.numFailedTests + unloaded.length}\n`)
for (const file of report.testResults) {
  if (file.message !== '') process.stderr.write(`${file.name}\n${file.message}\n`)
  for (const { status, fullName, failureMessages } of file.assertionResults) {
    if (status !== 'failed') continue
    const message = failureMessages.join('\n').slice(0, MESSAGE_CHARACTERS)
    process.stderr.write(`${file.name}: ${fullName}\n${message}\n`)
  }
}
