// The tables of docs/guide/what-limits-cost.md.
import { markdownTable } from '../common/markdown.mjs'
import { measured } from './constants.mjs'
import { bytesText, cell, count } from './format.mjs'

const MILLION = 1e6

/** Rate, what a core of Redis bears, and what a decision costs, of some contenders of one row. */
function costTable(results, row, named) {
  const cells = Object.entries(named).map(([shown, contender]) => {
    const of = (number) => measured(results, row, contender, number)
    return [
      shown,
      count(of('perSecond')),
      count(1e6 / of('redisUs')),
      cell(of('redisUs'), 1, 'µs'),
      cell(of('clientUs'), 1, 'µs'),
      cell(of('wireBytes'), 0, 'bytes'),
    ]
  })
  const head = ['', 'decisions/s, one process', 'a core of Redis', 'Redis CPU', 'client CPU', 'on the wire']
  return markdownTable(head, cells)
}

const same = (...names) => Object.fromEntries(names.map((name) => [name, name]))

const peersTable = ({ library }) =>
  costTable(library, 'one-limit', {
    Headgate: 'headgate',
    ...same(
      'rate-limiter-flexible',
      'rate-limiter-flexible, pipelining',
      'rate-limit-redis',
      'rate-limit-redis, pipelining',
    ),
  })

const threeTable = ({ library }) =>
  costTable(library, 'three-limits', {
    Headgate: 'headgate, three limits',
    ...same('RateLimiterUnion', 'RateLimiterUnion, pipelining'),
  })

const batchesTable = ({ library }) =>
  costTable(library, 'batches', {
    '256 callers at once': 'headgate',
    '16 callers at once': 'headgate, 16 callers',
    '64 instances, 1 caller each': 'headgate, alone on 64 connections',
  })

const algorithmsTable = ({ algorithms }) =>
  costTable(
    algorithms,
    'each-algorithm',
    same(
      'token bucket',
      'leaky bucket',
      'fixed window',
      'calendar window',
      'sliding window',
      'sliding window, strict',
      'sliding log',
      'concurrency',
    ),
  )

const besideTable = ({ algorithms }) =>
  markdownTable(
    ['', 'decisions/s', 'Redis CPU', 'client CPU'],
    [
      ...rowsOf(algorithms, 'candidate', ['one limit', 'one limit, candidate']),
      ...rowsOf(algorithms, 'candidate', ['three limits', 'three limits, candidate of one']),
      ...rowsOf(algorithms, 'shadow', ['one limit, shadow rule', 'three limits, shadow rule of one']),
    ],
  )

const rowsOf = (results, row, names) =>
  names.map((name) => {
    const of = (number) => measured(results, row, name, number)
    return [name, count(of('perSecond')), cell(of('redisUs'), 1, 'µs'), cell(of('clientUs'), 1, 'µs')]
  })

/** What a million keys take, by the growth of `used_memory`, the expiries' entries included. */
function memoryTable({ library, algorithms, bytes }) {
  const own = Object.keys(algorithms.rows['algorithms-bytes']?.runs ?? {}).map((name) => [name, bytes(name)])
  const peers = ['rate-limiter-flexible', 'rate-limit-redis'].map((name) => [
    name,
    measured(library, 'bytes', name, 'usedBytes'),
  ])
  const cells = [...own, ...peers].map(([name, each]) => [name, cell(each, 0), bytesText(MILLION * each)])
  return markdownTable(['state', 'bytes a key', 'a million keys'], cells)
}

function worstTable({ algorithms }) {
  const cells = Object.entries(algorithms.rows.worst?.runs ?? {}).map(([name, runs]) => {
    const middle = (index) => runs.map(({ ms }) => ms[index]).toSorted((a, b) => a - b)[runs.length >> 1]
    return [name, ...[0, 1, 2].map((index) => cell(middle(index), 2, 'ms'))]
  })
  return markdownTable(['one call on', 'median', '99 of 100', 'longest'], cells)
}

function measuredOn({ library, algorithms }) {
  const of = ({ date = '–', commit = '–', cpu, versions }) =>
    cpu === undefined
      ? 'not measured yet'
      : `${date.slice(0, 10)}, commit ${commit}, ${cpu.cores} × ${cpu.model}, node ${versions.node}, Redis ${versions.redis}`
  return `Measured: the library ${of(library)}; the algorithms ${of(algorithms)}. Rates are those of a client and a Redis that share the machine.`
}

export const costs = (c) => ({
  measured: measuredOn(c),
  peers: peersTable(c),
  three: threeTable(c),
  batches: batchesTable(c),
  algorithms: algorithmsTable(c),
  beside: besideTable(c),
  memory: memoryTable(c),
  worst: worstTable(c),
})
