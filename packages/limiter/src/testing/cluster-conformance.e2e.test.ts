import { afterAll, beforeAll, describe, it } from 'vitest'
import { CLUSTER_CLIENTS } from '../../../../test/redis-clients.ts'
import { type ClusterOfRedis, startRedisCluster } from '../../../../test/redis-cluster.ts'
import { redisStoreOnClock } from './redis-on-clock.ts'
import { storeConformance } from './store-conformance.ts'

let cluster: ClusterOfRedis

beforeAll(async () => {
  cluster = await startRedisCluster()
})

afterAll(() => cluster.stop())

let stores = 0

describe.each(CLUSTER_CLIENTS)('a store on a cluster through $name', ({ make }) => {
  const seeds = () => cluster.servers.slice(0, 2).map(({ url }) => url)
  const cases = storeConformance((clock) =>
    redisStoreOnClock(make(seeds()), clock, { prefix: `conformance-${++stores}` }),
  )
  for (const { name, run } of cases) it(name, run)
})
