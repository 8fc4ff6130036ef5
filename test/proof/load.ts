import { Pool } from 'undici'

/** Somebody who sends requests at a steady rate. */
export interface Sender {
  /** Requests a second. */
  readonly rate: number
  readonly path: string
  readonly method?: string
  /** Who sends the nth request. */
  user(n: number): string
}

export interface Sent {
  readonly allowed: number
  readonly refused: number
  /** Answers that are neither the upstream's nor a 429, and requests without an answer. */
  readonly failed: number
}

/** How often due requests are sent, in ms. */
const TICK_MS = 5

/** Sends at each sender's rate, in turn to each gateway, for as long; resolves when all is answered. */
export async function sendFor(seconds: number, ports: readonly number[], senders: readonly Sender[]): Promise<Sent[]> {
  const pools = ports.map((port) => new Pool(`http://127.0.0.1:${port}`, { connections: 32 }))
  const answers = await Promise.all(senders.map((sender) => send(sender, seconds, pools)))
  await Promise.all(pools.map((pool) => pool.close()))
  return answers
}

function send(sender: Sender, seconds: number, pools: readonly Pool[]): Promise<Sent> {
  const counts = { allowed: 0, refused: 0, failed: 0 }
  const total = Math.round(sender.rate * seconds)
  const startMs = performance.now()
  let sent = 0
  let answered = 0
  return new Promise((resolve) => {
    const one = async (n: number) => {
      const pool = pools[n % pools.length] as Pool
      const status = await request(pool, sender, n)
      if (status === 200) counts.allowed += 1
      else if (status === 429) counts.refused += 1
      else counts.failed += 1
      answered += 1
      if (answered === total) {
        clearInterval(timer)
        resolve(counts)
      }
    }
    const timer = setInterval(() => {
      const due = Math.min(total, Math.floor(((performance.now() - startMs) / 1000) * sender.rate) + 1)
      while (sent < due) void one(sent++)
    }, TICK_MS)
  })
}

async function request(pool: Pool, sender: Sender, n: number): Promise<number> {
  try {
    const { statusCode, body } = await pool.request({
      path: sender.path,
      method: sender.method ?? 'GET',
      headers: { 'x-user-id': sender.user(n) },
    })
    await body.dump()
    return statusCode
  } catch {
    return 0
  }
}
