// The least that a correct proxy can be: node:http in front, undici's Pool behind, header fields copied
// raw but for those between two neighbours, bodies streamed both ways with back-pressure. No limits.
import { Pool } from 'undici'

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** @returns a listener for node:http's requests */
export function bareProxy(upstream) {
  const pool = new Pool(upstream, { connections: 128, pipelining: 1, keepAliveTimeout: 60_000 })
  return (req, res) => {
    const { method, url: path } = req
    const hasBody = req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined
    pool.dispatch({ method, path, headers: requestFields(req.rawHeaders), body: hasBody ? req : null }, new Answer(res))
  }
}

function requestFields(raw) {
  const fields = []
  for (let i = 0; i < raw.length; i += 2) if (!HOP_BY_HOP.has(raw[i].toLowerCase())) fields.push(raw[i], raw[i + 1])
  return fields
}

class Answer {
  constructor(res) {
    this.res = res
  }

  onConnect(abort) {
    this.res.once('close', () => {
      if (!this.res.writableFinished) abort()
    })
  }

  onHeaders(status, raw, resume, statusText) {
    if (status < 200) return true
    const fields = []
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i].latin1Slice()
      if (!HOP_BY_HOP.has(name.toLowerCase())) fields.push(name, raw[i + 1].latin1Slice())
    }
    this.res.writeHead(status, statusText, fields)
    this.resume = resume
    return true
  }

  onData(chunk) {
    const more = this.res.write(chunk)
    if (!more) this.res.once('drain', this.resume)
    return more
  }

  onComplete() {
    this.res.end()
  }

  onError() {
    if (this.res.headersSent) this.res.destroy()
    else this.res.writeHead(502).end()
  }
}
