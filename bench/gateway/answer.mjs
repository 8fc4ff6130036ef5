export const BODY = JSON.stringify({ id: 42, name: 'a product', price: 1999, currency: 'EUR', stock: 7 })

/** A trivial upstream: a small answer at once. */
export function answer(_req, res) {
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': BODY.length })
  res.end(BODY)
}
