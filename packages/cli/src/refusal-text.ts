import type { Decision } from 'headgate'
import { waitText } from './wait-text.ts'

/** Why a decision refuses, and until when: `orders/user has too little left; retry in 180ms`. */
export function refusalText(decision: Decision): string {
  const who = `${decision.rule}/${decision.limitedBy}`
  if (decision.reason === 'never') return `${who} can never hold what this costs`
  const why = decision.reason === 'blocked' ? 'is blocked' : 'has too little left'
  return `${who} ${why}; retry in ${waitText(decision.retryAfterMs)}`
}
