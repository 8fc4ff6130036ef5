import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const script = join(import.meta.dirname, 'load.lua')
export const PATH = '/api/product/detail?id=42'

/** 64 connections, each of which asks again as soon as it has its answer. */
export async function load(port, seconds) {
  const args = ['-t1', '-c64', `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}${PATH}`]
  const { stdout } = await promisify(execFile)('wrk', args).catch((error) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error('The gateway table needs wrk on the PATH. Debian: apt-get install wrk; macOS: brew install wrk')
  })
  return JSON.parse(/^JSON (.*)$/m.exec(stdout)[1])
}
