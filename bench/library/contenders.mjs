// Who is measured. Each gives `check`, as its users call it, and `ok`: whether an answer was an
// admission by the store, since nothing here is ever refused and nothing may be answered from elsewhere.
// README.md says why each option is as it is.
import { createLimiter, memoryStore, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'

const DAY = 86_400
/** Headgate's keys are `rate_limit:bench:KEY`; the peers get the same names. */
const PREFIX = 'rate_limit'
export const NAME = 'bench'

async function connect(port, options) {
  const client = new Redis({ host: '127.0.0.1', port, enableOfflineQueue: false, lazyConnect: true, ...options })
  await client.connect()
  return client
}

/** A client of the whole cluster, that is told of one node. */
const clusterAt = (port) => new Cluster([{ host: '127.0.0.1', port }], { enableOfflineQueue: false, lazyConnect: true })

const bucket = ({ limit, period = '1d' }) => tokenBucket({ limit, period })
const points = ({ limit }, keyPrefix) => ({ points: limit, duration: DAY, keyPrefix })
export const headgateOk = (decision) => decision.allowed && decision.source === 'store' && !decision.degraded
const flexibleOk = (res) => res.remainingPoints > 0

export async function headgateStore({ port }) {
  const client = await connect(port)
  // The store makes a connection of its own; the first check waits for it.
  return { client, store: redisStore(client, { prefix: PREFIX }) }
}

async function flexibleCluster(spec, options) {
  const storeClient = new Cluster([{ host: '127.0.0.1', port: spec.port }], { lazyConnect: true, ...options })
  await storeClient.connect()
  const limiter = new RateLimiterRedis({ storeClient, ...points(spec, `${PREFIX}:${NAME}`) })
  return { check: (key) => limiter.consume(key), ok: flexibleOk }
}

async function flexibleLimiter(spec, own, options) {
  const storeClient = await connect(spec.port, options)
  return { storeClient, limiter: new RateLimiterRedis({ storeClient, ...points(spec, `${PREFIX}:${NAME}`), ...own }) }
}

async function flexible(spec, options) {
  const { limiter } = await flexibleLimiter(spec, {}, options)
  return { check: (key) => limiter.consume(key), ok: flexibleOk }
}

async function flexibleUnion(spec, options) {
  const storeClient = await connect(spec.port, options)
  const prefixes = ['global', 'ip', 'user'].map((name) => `${PREFIX}:${NAME}:${name}`)
  const limiters = prefixes.map((prefix) => new RateLimiterRedis({ storeClient, ...points(spec, prefix) }))
  const limiter = new RateLimiterUnion(...limiters)
  return { check: (key) => limiter.consume(key), ok: (res) => prefixes.every((prefix) => flexibleOk(res[prefix])) }
}

async function rateLimitRedis({ port, limit }, options) {
  const client = await connect(port, options)
  const store = new RedisStore({ sendCommand: (...args) => client.call(...args), prefix: `${PREFIX}:${NAME}:` })
  await store.init({ windowMs: DAY * 1000 })
  return { check: (key) => store.increment(key), ok: (info) => info.totalHits <= limit }
}

/** As 64 instances that are not busy: each store has one check at a time, so that each is a call of its own. */
async function alone(spec, contender) {
  const limiters = await Promise.all(Array.from({ length: 64 }, () => contender(spec)))
  async function check(key) {
    const limiter = limiters.pop()
    const decision = await limiter.check(key)
    limiters.push(limiter)
    return decision
  }
  return { check, ok: headgateOk }
}

const autoPipelining = { enableAutoPipelining: true }

/** Name → what makes it, from the port of Redis and the limit a day (one that is never reached). */
export const contenders = {
  async headgate(spec) {
    const { client, store } = await headgateStore(spec)
    const limiter = createLimiter({ name: NAME, store, limit: bucket(spec) })
    return { check: (key) => limiter.check(key), ok: headgateOk, client }
  },
  async 'headgate, alone on 64 connections'(spec) {
    return alone(spec, contenders.headgate)
  },
  'headgate, cluster'(spec) {
    const limiter = createLimiter({ name: NAME, store: redisStore(clusterAt(spec.port)), limit: bucket(spec) })
    return { check: (key) => limiter.check(key), ok: headgateOk }
  },
  async 'headgate, cluster, alone on 64 connections'(spec) {
    return alone(spec, contenders['headgate, cluster'])
  },
  async 'headgate, three limits'(spec) {
    const { store } = await headgateStore(spec)
    const limits = { global: bucket(spec), ip: bucket(spec), user: bucket(spec) }
    const limiter = createLimiter({ name: NAME, store, limits })
    return { check: (key) => limiter.check({ global: key, ip: key, user: key }), ok: headgateOk }
  },
  async 'headgate, refused'(spec) {
    const { store } = await headgateStore(spec)
    const limiter = createLimiter({ name: NAME, store, limit: bucket(spec) })
    return { check: (key) => limiter.check(key), ok: ({ allowed, source }) => !allowed && source === 'deny-cache' }
  },
  async 'headgate, lease'(spec) {
    const { store } = await headgateStore(spec)
    const limiter = createLimiter({ name: NAME, store, limit: bucket(spec), accuracy: 'lease' })
    const most = spec.limit
    return {
      check: (key) => limiter.check(key),
      ok: ({ allowed, degraded }) => allowed && !degraded,
      stranded: () => limiter.strandedUnits / most,
    }
  },
  async 'headgate, memory'(spec) {
    const limiter = createLimiter({ name: NAME, store: memoryStore(), limit: bucket(spec) })
    return { check: (key) => limiter.check(key), ok: headgateOk }
  },
  'rate-limiter-flexible': (spec) => flexible(spec),
  'rate-limiter-flexible, pipelining': (spec) => flexible(spec, autoPipelining),
  'rate-limiter-flexible, cluster': (spec) => flexibleCluster(spec),
  'rate-limiter-flexible, cluster, pipelining': (spec) => flexibleCluster(spec, autoPipelining),
  async 'rate-limiter-flexible, refused'(spec) {
    const { limiter } = await flexibleLimiter(spec, { inMemoryBlockOnConsumed: spec.limit + 1 })
    return { check: (key) => limiter.consume(key).catch((res) => res), ok: (res) => res.remainingPoints === 0 }
  },
  RateLimiterUnion: (spec) => flexibleUnion(spec),
  'RateLimiterUnion, pipelining': (spec) => flexibleUnion(spec, autoPipelining),
  async RateLimiterMemory(spec) {
    const limiter = new RateLimiterMemory(points(spec, `${PREFIX}:${NAME}`))
    return { check: (key) => limiter.consume(key), ok: flexibleOk }
  },
  'rate-limit-redis': (spec) => rateLimitRedis(spec),
  'rate-limit-redis, pipelining': (spec) => rateLimitRedis(spec, autoPipelining),
}
