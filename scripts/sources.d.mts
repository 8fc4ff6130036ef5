export const packages: readonly string[]
export function sourceHash(name: string): string
export function stalePackages(): string[]
export function stampOf(name: string): string
