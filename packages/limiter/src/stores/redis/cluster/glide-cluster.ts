import { type GlideSettings, isGlide, linkOfGlide, type MakeGlide, type ValkeyGlideClient } from '../glide.ts'
import type { ClusterClient } from './client.ts'

/** The shape of a Valkey GLIDE client of a cluster (`GlideClusterClient`) that is needed here. */
export interface ValkeyGlideCluster extends ValkeyGlideClient {
  fcallWithRoute(name: string, args: string[]): Promise<unknown>
}

/** Its class, as it is at run time. */
interface ClusterClass {
  new (socket: unknown, config: object): ValkeyGlideClient & { createClientRequest(config: object): object }
  createClientInternal(
    config: object,
    make: (socket: unknown, config: object) => ValkeyGlideClient,
  ): ReturnType<MakeGlide>
}

interface Made {
  readonly config: GlideSettings
  readonly constructor: ClusterClass
}

const PORT = 6379

export function isGlideCluster(client: object): client is ValkeyGlideCluster {
  return isGlide(client) && typeof (client as { fcallWithRoute?: unknown }).fcallWithRoute === 'function'
}

/** It has no way to listen. */
export function glideCluster(cluster: ValkeyGlideCluster): ClusterClient {
  const { config, constructor: Client } = cluster as unknown as Made
  const make = makerOfNodes(Client)
  return {
    seeds: config.addresses.map(({ host, port = PORT }) => ({ host, port })),
    reach: (address) => address,
    open: ({ host, port }, events, connectTimeoutMs) =>
      linkOfGlide({ ...config, addresses: [{ host, port }] }, make, events, connectTimeoutMs),
  }
}

/**
 * Makes clients of single servers out of a cluster's class, which alone is at hand: one that speaks to the whole cluster
 * would follow its redirections itself, and send again what may have run.
 */
function makerOfNodes(Client: ClusterClass): MakeGlide {
  class NodeClient extends Client {
    override createClientRequest(config: object): object {
      return Object.assign(super.createClientRequest(config), { clusterModeEnabled: false })
    }
  }
  return (config) => Client.createClientInternal.call(NodeClient, config, (socket, own) => new NodeClient(socket, own))
}
