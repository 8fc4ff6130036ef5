import { describe, expect, it } from 'vitest'
import { refuseOldServer } from './server-version.ts'

const NOPERM = () => Promise.reject(new Error('NOPERM this user has no permissions to run the command'))

/** The forms in which clients give the reply of HELLO. */
const forms = (version: string) => [
  ['server', 'redis', 'version', version, 'proto', 2],
  { server: 'redis', version, proto: 3 },
  [
    { key: 'server', value: 'redis' },
    { key: 'version', value: version },
  ],
]

describe('refuseOldServer', () => {
  it.each(['7.0.15', '7.2.4', '8.0.2', '10.1.0'])('takes %s', async (version) => {
    for (const reply of forms(version)) await expect(refuseOldServer(async () => reply)).resolves.toBeUndefined()
  })

  it.each(['6.2.14', '5.0.3'])('refuses %s by the promise that it could not keep', async (version) => {
    for (const reply of forms(version)) {
      await expect(refuseOldServer(async () => reply)).rejects.toMatchObject({
        kind: 'connection',
        message: expect.stringMatching(
          /^the server is Redis \d\.\d, whose scripts could stop half-way.*use Redis 7\.0/,
        ),
      })
    }
  })

  it('asks INFO where HELLO is not known or not allowed', async () => {
    const info = (version: string) => (args: readonly string[]) =>
      args[0] === 'INFO' ? Promise.resolve(`# Server\r\nredis_version:${version}\r\n`) : NOPERM()
    await expect(refuseOldServer(info('4.0.9'))).rejects.toMatchObject({ message: /Redis 4\.0/ })
    await expect(refuseOldServer(info('7.0.0'))).resolves.toBeUndefined()
  })

  it('trusts who does not tell', async () => {
    await expect(refuseOldServer(NOPERM)).resolves.toBeUndefined()
    await expect(refuseOldServer(async () => 'OK')).resolves.toBeUndefined()
  })
})
