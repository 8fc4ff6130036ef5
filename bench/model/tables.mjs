// The tables of docs/guide/scaling.md, from what was measured and from the simulations beside this file.
import { markdownTable } from '../common/markdown.mjs'
import { withDenyCache } from './deny-cache.mjs'
import { batchSize } from './event-loop.mjs'
import { bytesText, cell, count, percent } from './format.mjs'
import { withLeases } from './lease.mjs'

const INSTANCES = [10, 100, 1000, 10_000]
/** The share of a core up to which a Redis answers without queueing much. */
const BUSY = 0.7

const constantsTable = (c) =>
  markdownTable(
    ['what', 'measured', 'row of the bench'],
    [
      ['a call of the script, besides its checks: Redis CPU', cell(c.callUs, 1, 'µs'), '`batches`'],
      ['a check within a call: Redis CPU', cell(c.checkUs, 1, 'µs'), '`batches`'],
      ['a check of one hot key, in full batches: Redis CPU', cell(c.hotUs, 1, 'µs'), '`hot-key`'],
      [
        'on three masters, a check in shared calls and one alone: Redis CPU of all three',
        `${cell(c.clusterUs, 1)} and ${cell(c.clusterAloneUs, 1, 'µs')}`,
        '`cluster`',
      ],
      ['a million keys instead of a thousand: Redis CPU of a check', factor(c), '`keys`'],
      ['an announcement, for each subscriber: Redis CPU', cell(c.deliveryUs, 1, 'µs'), '`announcements`'],
      [
        'on the wire, a check alone and in a full batch',
        `${cell(c.wireAlone, 0)} and ${cell(c.wireFull, 0, 'bytes')}`,
        '`batches`',
      ],
      ['a request of the gateway: CPU of its process', cell(c.gatewayUs, 0, 'µs'), '`gateway`'],
    ],
  )

const factor = ({ millionKeysUs, thousandKeysUs }) => `× ${cell(millionKeysUs / thousandKeysUs, 1)}`

/** Exact decisions: each asks Redis. */
function exactTable(c) {
  const rows = [100, 1000, 4000].flatMap((perSecond) => {
    const batch = batchSize(perSecond, c.gatewayUs)
    const us = c.callUs / batch + c.checkUs
    const bytes = c.wireFull + (c.wireAlone - c.wireFull) / batch
    return INSTANCES.map((instances) => {
      const all = instances * perSecond
      return [
        count(instances),
        count(perSecond),
        count(all),
        cell(batch, 2),
        cell(us, 1, 'µs'),
        cell((all * us) / 1e6 / BUSY, 1),
        cell((all * bytes * 8) / 1e6, 0, 'Mbit/s'),
      ]
    })
  })
  const head = [
    'instances',
    'decisions/s each',
    'decisions/s',
    'checks a call',
    'Redis CPU each',
    'Redis cores',
    'wire',
  ]
  return markdownTable(head, rows)
}

function keysTable({ bytes }) {
  const names = ['token bucket', 'fixed window', 'sliding window', 'sliding log, 100 runs']
  const rows = [4, 5, 6, 7, 8, 9].map((power) => {
    const keys = 10 ** power
    return [count(keys), ...names.map((name) => bytesText(keys * bytes(name)))]
  })
  return markdownTable(['live keys', ...names], rows)
}

function denyTable() {
  const rows = [5, 100].flatMap((rate) =>
    INSTANCES.map((instances) => {
      const [light, heavy] = [1000, 50_000].map((asked) => withDenyCache({ instances, asked, rate }))
      return [`${rate}/s`, count(instances), percent(light.share), percent(heavy.share)]
    }),
  )
  return markdownTable(['limit of the key', 'instances', 'asked for 1,000/s', 'asked for 50,000/s'], rows)
}

function announcementsTable({ deliveryUs }) {
  const rows = INSTANCES.map((instances) => [
    count(instances),
    ...[1, 10, 100].map((perSecond) => percent((instances * perSecond * deliveryUs) / 1e6)),
  ])
  return markdownTable(['instances', '1 a second', '10 a second', '100 a second'], rows)
}

function leasesTable() {
  const rows = [20_000, 1000].flatMap((rate) =>
    INSTANCES.flatMap((instances) =>
      [0.5, 0.95, 2].map((times) => {
        const run = withLeases({ instances, asked: times * rate, rate, burst: rate })
        return [
          `${count(rate)}/s`,
          count(instances),
          percent(times),
          count(run.slice),
          cell(run.calls, 3),
          percent(run.stranded),
          percent(run.strandedMost),
          percent(run.short),
          count(run.overshoot),
        ]
      }),
    ),
  )
  const head = [
    'limit and burst',
    'instances',
    'asked for',
    'slice',
    'calls a decision',
    'stranded, mean',
    'most',
    'passes less by',
    'overshoot',
  ]
  return markdownTable(head, rows)
}

export const scaling = (c) => ({
  constants: constantsTable(c),
  exact: exactTable(c),
  keys: keysTable(c),
  deny: denyTable(),
  announcements: announcementsTable(c),
  leases: leasesTable(),
})
