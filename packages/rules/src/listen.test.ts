import { describe, expect, it } from 'vitest'
import { formatListen, isLoopback, parseListen } from './listen.ts'

describe('an address to listen on', () => {
  it.each([
    ['127.0.0.1:8080', { kind: 'tcp', host: '127.0.0.1', port: 8080 }],
    ['[::1]:0', { kind: 'tcp', host: '::1', port: 0 }],
    [':8080', { kind: 'tcp', host: '::', port: 8080 }],
    ['gate.internal:80', { kind: 'tcp', host: 'gate.internal', port: 80 }],
    ['unix:/run/headgate.sock', { kind: 'unix', path: '/run/headgate.sock' }],
  ])('%s', (text, address) => {
    expect(parseListen(text)).toEqual(address)
  })

  it.each([
    '8080',
    '127.0.0.1',
    '::1:8080',
    '[::1]',
    '1.2.3:80',
    'a:65536',
    'a:-1',
    'unix:',
    '[a]:1',
    'a b:1',
    '',
    'http://a:1',
  ])('%s is none', (text) => {
    expect(parseListen(text)).toBeUndefined()
  })

  it('is formatted as it is written', () => {
    for (const text of ['127.0.0.1:8080', '[::1]:0', '[::]:8080', 'unix:/x']) {
      expect(formatListen(parseListen(text) as NonNullable<ReturnType<typeof parseListen>>)).toBe(text)
    }
  })

  it('is known to be for this machine only, or not', () => {
    const loopback = (text: string) => isLoopback(parseListen(text) as NonNullable<ReturnType<typeof parseListen>>)
    expect(['127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'localhost:1', 'unix:/x'].map(loopback)).toEqual(
      Array(5).fill(true),
    )
    expect([':1', '0.0.0.0:1', '[::]:1', '10.0.0.1:1', 'gate:1', '127.example:1'].map(loopback)).toEqual(
      Array(6).fill(false),
    )
  })
})
