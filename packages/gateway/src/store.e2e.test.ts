import { parseRules } from '@headgate/rules'
import { createEngine, fixedWindow } from 'headgate'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../../test/load.ts'
import { type Sentinels, startSentinels } from '../../../test/sentinels.ts'
import { createStore } from './store.ts'

const item = { rule: 'r', name: 'l', limit: fixedWindow({ limit: 5, period: '1h' }), key: 'k' }
let sentinels: Sentinels

beforeAll(async () => {
  sentinels = await startSentinels('p@ss')
})

afterAll(() => sentinels.stop())

function fileWith(login: string) {
  const hosts = sentinels.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  return parseRules(`store: redis+sentinel://${login}@${hosts}/${sentinels.name}/2\ninstances: 1\nrules: []`, {
    file: 'headgate.yaml',
  })
}

it('counts at the master that the Sentinels of the rule file name', async () => {
  const store = createStore(fileWith(':p%40ss'))
  const engine = createEngine({ store, timeoutMs: 1000 })
  await until('the store', async () => (await engine.check([item])).source === 'store')
  await engine.close()
  await store.close()
})

it('says of a wrong password that it is wrong, and nothing of it', async () => {
  const file = fileWith('ann:hunter2')
  const store = createStore(file)
  const engine = createEngine({ store, timeoutMs: 1000 })
  const error = await engine.check([{ ...item, onStoreFailure: 'throw' }]).catch((error: unknown) => error)
  expect(error).toMatchObject({ code: 'HEADGATE_STORE_UNAVAILABLE', cause: { kind: 'auth' } })
  expect(`${error} ${file.storeName} ${JSON.stringify(error)}`).not.toContain('hunter2')
  await engine.close()
  await store.close()
})
