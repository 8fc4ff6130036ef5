/** Where the four gateways listen, beside the quickstart's 8080 and 8083. */
export const ports = [8181, 8182, 8183, 8184]
