// Who is judged, by what it promises itself. Each gives `ask(key, cost)`: whether the request may pass, or a decision of
// Headgate, which also says whether it was made without the store; it rejects where the limiter does. Options are those of its documents, else its defaults; packages are loaded only by who plays them.
import * as judge from './judge.mjs'

/**
 * Of Headgate. By default it decides after 50 ms without the store; a busy machine is that slow at times, and what is
 * judged here is what the algorithms let pass. The peers wait for as long as it takes.
 */
const TIMEOUT_MS = 1000

async function connect({ port }, options) {
  const { Redis } = await import('ioredis')
  const client = new Redis({ host: '127.0.0.1', port, ...options })
  client.on('error', () => undefined)
  return client
}

/** @param limitOf the limit of `headgate` from its numbers */
function headgate(limitOf, promises, judged, options) {
  return {
    package: 'headgate',
    promises,
    judge: judged,
    costs: true,
    several: true,
    options,
    async make(spec) {
      const [headgate, { redisStore }] = await Promise.all([import('headgate'), import('headgate/redis')])
      const store = redisStore(await connect(spec, { lazyConnect: true }), { prefix: spec.name })
      const limits = Object.fromEntries(
        spec.limits.map(({ limit, periodMs: period }, i) => [`limit${i}`, limitOf(headgate, { limit, period })]),
      )
      const limiter = headgate.createLimiter({
        name: 'accuracy',
        store,
        limits,
        instances: spec.callers,
        timeoutMs: TIMEOUT_MS,
      })
      const names = Object.keys(limits)
      return (key, cost) => limiter.check(Object.fromEntries(names.map((name) => [name, key])), { cost })
    },
  }
}

/** One that rejects its refusals with something that is no Error. */
async function unlessRefused(consumed) {
  try {
    await consumed
    return true
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal
    return false
  }
}

async function flexible(spec, { limit, periodMs }, place) {
  const { RateLimiterRedis } = await import('rate-limiter-flexible')
  const storeClient = await connect(spec)
  return new RateLimiterRedis({
    storeClient,
    points: limit,
    duration: periodMs / 1000,
    keyPrefix: `${spec.name}${place}`,
  })
}

/** Peers of one limit, called for each limit in turn until one refuses. */
const oneByOne = (makeOne) => async (spec) => {
  const asks = await Promise.all(spec.limits.map((each, i) => makeOne(spec, each, i)))
  return async (key, cost) => {
    for (const ask of asks) if (!(await ask(key, cost))) return false
    return true
  }
}

/** Upstash speaks HTTP; this gives its scripts to a plain Redis, without the flag in their first line that it lacks. */
async function upstash(spec, algorithm, place) {
  const { Ratelimit } = await import('@upstash/ratelimit')
  const client = await connect(spec)
  const redis = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')),
    eval: (script, keys, args) => client.eval(script.replace(/^#!lua.*\n/, ''), keys.length, ...keys, ...args),
  }
  const limiter = new Ratelimit({ redis, limiter: algorithm(Ratelimit), prefix: `${spec.name}${place}` })
  return async (key, cost) => (await limiter.limit(key, { rate: cost })).success
}

const anyWindow = 'at most N in any period'
const byFirst = 'at most N in a window that begins with its first request'

export const contenders = {
  'Headgate token bucket': headgate(
    ({ tokenBucket }, numbers) => tokenBucket(numbers),
    'in any time T at most N + N·T/P; what fits is never refused',
    judge.bucket,
    '`tokenBucket({ limit, period })`, burst N',
  ),
  'Headgate leaky bucket': headgate(
    ({ leakyBucket }, numbers) => leakyBucket({ ...numbers, queue: numbers.limit - 1 }),
    'a line of N − 1 behind the one that leaves; what fits is never refused',
    judge.bucket,
    '`leakyBucket({ limit, period, queue: N - 1 })`; taking a place is what counts here',
  ),
  'Headgate fixed window': headgate(
    ({ fixedWindow }, numbers) => fixedWindow(numbers),
    'at most N in a window by the clock; what fits is never refused',
    judge.clock,
    "`fixedWindow({ limit, period })`, `align: 'clock'`",
  ),
  'Headgate fixed window, first hit': headgate(
    ({ fixedWindow }, numbers) => fixedWindow({ ...numbers, align: 'first-hit' }),
    'at most N in a window that begins with its first admitted request; what fits is never refused',
    (attempts, limit) =>
      judge.firstHit(attempts, { ...limit, opens: ({ admitted, local }) => admitted !== false && !local }),
    "`align: 'first-hit'`",
  ),
  'Headgate sliding window': headgate(
    ({ slidingWindow }, numbers) => slidingWindow(numbers),
    'at most N in any 0.9 P; what leaves at most N in the last 1.1 P is never refused',
    (attempts, limit) => judge.any(attempts, { ...limit, overMs: 0.9 * limit.periodMs, underMs: 1.1 * limit.periodMs }),
    '`slidingWindow({ limit, period })`, ten slices',
  ),
  'Headgate sliding window, strict': headgate(
    ({ slidingWindow }, numbers) => slidingWindow({ ...numbers, strict: true }),
    'at most N in any period; what leaves at most N in the last 1.1 P is never refused',
    (attempts, limit) => judge.any(attempts, { ...limit, underMs: 1.1 * limit.periodMs }),
    '`strict: true`',
  ),
  'Headgate sliding log': headgate(
    ({ slidingLog }, numbers) => slidingLog(numbers),
    `${anyWindow}; what fits is never refused`,
    judge.any,
    '`slidingLog({ limit, period })`',
  ),
  'rate-limiter-flexible': {
    package: 'rate-limiter-flexible',
    promises: byFirst,
    judge: judge.firstHit,
    costs: true,
    options:
      '`RateLimiterRedis({ points, duration })`, `consume(key, cost)`. It counts the cost of refused requests too',
    make: oneByOne(async (spec, limit, place) => {
      const limiter = await flexible(spec, limit, place)
      return (key, cost) => unlessRefused(limiter.consume(key, cost))
    }),
  },
  RateLimiterUnion: {
    package: 'rate-limiter-flexible',
    promises: byFirst,
    judge: judge.firstHit,
    several: true,
    onlySeveral: true,
    options: '`new RateLimiterUnion(...)` of two `RateLimiterRedis`',
    async make(spec) {
      const { RateLimiterUnion } = await import('rate-limiter-flexible')
      const limiters = await Promise.all(spec.limits.map((limit, place) => flexible(spec, limit, place)))
      const union = new RateLimiterUnion(...limiters)
      return (key, cost) => unlessRefused(union.consume(key, cost))
    },
  },
  'rate-limit-redis': {
    package: 'rate-limit-redis',
    promises: byFirst,
    judge: judge.firstHit,
    options: 'its store, asked as express-rate-limit asks it: `totalHits > limit` is refused',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const { RedisStore } = await import('rate-limit-redis')
      const client = await connect(spec)
      const store = new RedisStore({
        sendCommand: (...args) => client.call(...args),
        prefix: `${spec.name}${place}:`,
      })
      await store.init({ windowMs: periodMs })
      return async (key) => (await store.increment(key)).totalHits <= limit
    }),
  },
  '@fastify/rate-limit': {
    package: '@fastify/rate-limit',
    promises: byFirst,
    judge: judge.firstHit,
    options: 'the plugin with `redis`, `max`, `timeWindow`, `nameSpace`; requests by `inject`',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const [{ default: fastify }, { default: plugin }] = await Promise.all([
        import('fastify'),
        import('@fastify/rate-limit'),
      ])
      const redis = await connect(spec)
      const app = fastify()
      const keyGenerator = (request) => request.headers['x-key']
      const nameSpace = `${spec.name}${place}:`
      await app.register(plugin, { redis, max: limit, timeWindow: periodMs, keyGenerator, nameSpace })
      app.get('/', () => 'ok')
      await app.ready()
      return async (key) => {
        const { statusCode } = await app.inject({ url: '/', headers: { 'x-key': key } })
        if (statusCode >= 500) throw new Error(`status ${statusCode}`)
        return statusCode === 200
      }
    }),
  },
  '@nest-lab/throttler-storage-redis': {
    package: '@nest-lab/throttler-storage-redis',
    promises: `${byFirst}; the first beyond N blocks for \`blockDuration\`, the period`,
    judge: judge.blocking,
    options: 'the storage, asked as the guard of @nestjs/throttler asks it: `isBlocked` is refused',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      await import('reflect-metadata')
      const { ThrottlerStorageRedisService } = await import('@nest-lab/throttler-storage-redis')
      const storage = new ThrottlerStorageRedisService(await connect(spec))
      return async (key) => !(await storage.increment(key, periodMs, limit, periodMs, `${spec.name}${place}`)).isBlocked
    }),
  },
  'async-ratelimiter': {
    package: 'async-ratelimiter',
    promises: anyWindow,
    judge: judge.any,
    options: '`{ max, duration }`; `remaining` 0 is refused',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const { default: Limiter } = await import('async-ratelimiter')
      const namespace = `${spec.name}${place}`
      const limiter = new Limiter({ db: await connect(spec), max: limit, duration: periodMs, namespace })
      return async (key) => (await limiter.get({ id: key })).remaining > 0
    }),
  },
  ratelimiter: {
    package: 'ratelimiter',
    promises: anyWindow,
    judge: judge.any,
    options:
      '`{ id, max, duration }`; `remaining` 0 is refused. It counts refused requests too, which its documents leave open',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const { default: Limiter } = await import('ratelimiter')
      const db = await connect(spec)
      return (key) =>
        new Promise((resolve, reject) => {
          const limiter = new Limiter({ id: `${spec.name}${place}:${key}`, db, max: limit, duration: periodMs })
          limiter.get((error, info) => (error ? reject(error) : resolve(info.remaining > 0)))
        })
    }),
  },
  'sliding-window-rate-limiter': {
    package: 'sliding-window-rate-limiter',
    promises: anyWindow,
    judge: judge.any,
    options: '`createLimiter({ interval, redis })`, `reserve(key, limit)`; no token is a refusal',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const { SlidingWindowRateLimiter } = await import('sliding-window-rate-limiter')
      const limiter = SlidingWindowRateLimiter.createLimiter({ interval: periodMs, redis: await connect(spec) })
      return async (key) => (await limiter.reserve(`${spec.name}${place}:${key}`, limit)).token !== undefined
    }),
  },
  'Upstash fixed window': {
    package: '@upstash/ratelimit',
    promises: 'at most N in a window by the clock',
    judge: judge.clock,
    costs: true,
    options:
      '`Ratelimit.fixedWindow(N, P)`, its cache of refusals as by default; scripts on plain Redis by an adapter. It counts the cost of refused requests too',
    make: oneByOne((spec, { limit, periodMs }, place) =>
      upstash(spec, (Ratelimit) => Ratelimit.fixedWindow(limit, `${periodMs} ms`), place),
    ),
  },
  'Upstash sliding window': {
    package: '@upstash/ratelimit',
    promises: 'the window before, by the part of it in the last period, and this window: together at most N',
    judge: judge.weighted,
    costs: true,
    options:
      '`Ratelimit.slidingWindow(N, P)`, otherwise the same; after a refusal its cache refuses until the window ends',
    make: oneByOne((spec, { limit, periodMs }, place) =>
      upstash(spec, (Ratelimit) => Ratelimit.slidingWindow(limit, `${periodMs} ms`), place),
    ),
  },
  'Upstash token bucket': {
    package: '@upstash/ratelimit',
    promises: 'N at once, one more each P/N',
    judge: (attempts, limit) => judge.bucket(attempts, { ...limit, lag: 1 }),
    costs: true,
    options: '`Ratelimit.tokenBucket(1, P/N, N)`, otherwise the same',
    make: oneByOne((spec, { limit, periodMs }, place) =>
      upstash(spec, (Ratelimit) => Ratelimit.tokenBucket(1, `${periodMs / limit} ms`, limit), place),
    ),
  },
  bottleneck: {
    package: 'bottleneck',
    promises: 'at most N between two refreshes of the reservoir, a period apart',
    judge: judge.unanchored,
    costs: true,
    // Its documents ask for whole multiples of 5 s with Redis.
    leastPeriodMs: 5000,
    options:
      '`Group` with `reservoir`, `reservoirRefreshAmount`, `reservoirRefreshInterval`, `highWater: 0`, `strategy: OVERFLOW`: a dropped job is refused. It is a queue: under load some jobs wait for the next refresh all the same, and count as late',
    make: oneByOne(async (spec, { limit, periodMs }, place) => {
      const [{ default: Bottleneck }, { Redis }] = await Promise.all([import('bottleneck'), import('ioredis')])
      const group = new Bottleneck.Group({
        id: `${spec.name}${place}`,
        datastore: 'ioredis',
        Redis,
        clientOptions: { host: '127.0.0.1', port: spec.port },
        reservoir: limit,
        reservoirRefreshAmount: limit,
        reservoirRefreshInterval: periodMs,
        highWater: 0,
        strategy: Bottleneck.strategy.OVERFLOW,
      })
      group.on('error', () => undefined)
      return async (key, cost) => {
        try {
          await group.key(key).schedule({ weight: cost }, async () => undefined)
          return true
        } catch (error) {
          if (error instanceof Bottleneck.BottleneckError) return false
          throw error
        }
      }
    }),
  },
}
