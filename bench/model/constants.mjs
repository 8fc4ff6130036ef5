// What was measured, as the documents and the model take it: medians out of bench/results. A row that is not there is
// NaN, and stands as – in a table.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../common/results.mjs'

export function readResults(name) {
  const file = join(folder, `${name}.json`)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { rows: {} }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** The median of a number over the runs of one contender in one row. */
export function measured({ rows }, row, contender, number) {
  return median((rows[row]?.runs?.[contender] ?? []).map((run) => run[number]))
}

/** The most checks that share a call of the script (`MAX_CHECKS` in the library's batch.ts). */
const FULL_BATCH = 128

export function constants() {
  const library = readResults('library')
  const algorithms = readResults('algorithms')
  const gateway = readResults('gateway')
  const alone = measured(library, 'batches', 'headgate, alone on 64 connections', 'redisUs')
  const full = measured(library, 'batches', 'headgate', 'redisUs')
  // A call costs so much, and each check in it so much: two measured points of call / batch + check.
  const callUs = (alone - full) / (1 - 1 / FULL_BATCH)
  return {
    callUs,
    checkUs: alone - callUs,
    clientUs: measured(library, 'one-limit', 'headgate', 'clientUs'),
    wireAlone: measured(library, 'batches', 'headgate, alone on 64 connections', 'wireBytes'),
    wireFull: measured(library, 'batches', 'headgate', 'wireBytes'),
    hotUs: measured(library, 'hot-key', 'headgate', 'redisUs'),
    clusterUs: measured(library, 'cluster', 'headgate, cluster', 'redisUs'),
    clusterAloneUs: measured(library, 'cluster', 'headgate, cluster, alone on 64 connections', 'redisUs'),
    thousandKeysUs: measured(library, 'keys', 'headgate, 1,000 keys', 'redisUs'),
    millionKeysUs: measured(library, 'keys', 'headgate', 'redisUs'),
    deliveryUs: measured(library, 'announcements', 'announcements', 'deliveryUs'),
    gatewayUs: measured(gateway, 'gateway', 'headgate up', 'cpuUs'),
    bytes: (name) => measured(algorithms, 'algorithms-bytes', name, 'usedBytes'),
    library,
    algorithms,
    gateway,
  }
}
