import { createEngine, fixedWindow } from 'headgate'
import { expect, it } from 'vitest'
import { startRedisCluster } from '../../../test/redis-cluster.ts'
import { createStore } from './store.ts'

it('the store of a rule file may be a cluster, by some of its servers', async () => {
  const cluster = await startRedisCluster([], 0)
  const hosts = cluster.servers.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`)
  const settings = { kind: 'redis-cluster', tls: false, username: '', password: '', hosts } as const
  const store = createStore({ store: settings, prefix: 'rate_limit' })
  const engine = createEngine({ store, timeoutMs: 2000 })
  try {
    const limit = fixedWindow({ limit: 5, period: '1h' })
    const items = ['', 'ann', '192.0.2.1'].map((key, i) => ({ rule: 'r', name: `l${i}`, limit, key }))
    const { source, limits } = await engine.check(items)
    expect([source, limits.map(({ remaining }) => remaining)]).toEqual(['store', [4, 4, 4]])
  } finally {
    await engine.close()
    await store.close()
    await cluster.stop()
  }
})
