// biome-ignore lint/correctness/noUndeclaredDependencies: only tests load this file
import { onTestFinished } from 'vitest'
import { startRedis } from '../../../../test/redis.ts'
import { startProxy, type TcpProxy } from '../../../../test/tcp-proxy.ts'

/** A real Redis behind a network that can be made slow. It stops with its test. */
export async function slowStore(): Promise<{ url: string; network: TcpProxy }> {
  const redis = await startRedis()
  const network = await startProxy(redis.port)
  onTestFinished(async () => {
    await network.close()
    await redis.stop()
  })
  return { url: `redis://127.0.0.1:${network.port}`, network }
}
