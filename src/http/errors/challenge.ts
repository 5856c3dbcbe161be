import type { Request } from 'express';
import type { Environment } from '../../config/environment.js';
import { type DomainError, ScopeMissingError } from '../../domain/errors.js';
import { parseUrl } from '../../domain/references/page-url.js';

/** Where the metadata of the service as an OAuth resource is (RFC 9728); that of another resource has its path appended. */
export const METADATA_PATH = '/.well-known/oauth-protected-resource';
export const MCP_PATH = '/mcp';

/** A host of a caller can be anything: quotes would end the text in the header, and a path is none of an address. */
const ADDRESS = /^https?:\/\/[\w.:[\]-]+$/;

/** `OIDC_AUDIENCE` if it is a URL of HTTP: others, such as `api://…`, only name an audience. */
export function audienceUrl({ OIDC_AUDIENCE = '' }: Environment): URL | undefined {
  return /^https?:/i.test(OIDC_AUDIENCE) ? parseUrl(OIDC_AUDIENCE) : undefined;
}

/**
 * The address of the service as the caller reaches it. Only this caller gets it, who has sent it, and no response is cached;
 * behind a proxy it is the one that the caller sent to the proxy. Of the host of `OIDC_AUDIENCE` the scheme and port are those of
 * that URL, because not every proxy passes them on.
 *
 * @param request over HTTP/1.0 it can be without a host
 */
export function addressOf(request: { protocol: string; host?: string }, audience?: URL): string | undefined {
  const sent = `${request.protocol}://${request.host ?? ''}`;
  const url = ADDRESS.test(sent) ? parseUrl(sent) : undefined;
  return (audience?.hostname === url?.hostname ? audience : url)?.origin;
}

/**
 * The header `WWW-Authenticate`: of every 401, and of the 403 of a token that lacks a scope, so that a client requests another one. With
 * an identity provider it says where a client learns how to sign in.
 */
export function challengeOf(
  request: Pick<Request, 'protocol' | 'host' | 'path'>,
  error: DomainError,
  environment: Environment,
): string | undefined {
  const scope = error instanceof ScopeMissingError ? error.tokenScope : undefined;
  if (error.status !== 401 && scope === undefined) return undefined;
  if (environment.OIDC_ISSUER === undefined) return 'Bearer';
  const audience = audienceUrl(environment);
  const address = addressOf(request, audience);
  // Metadata names the resource of its own path, and for every path the resource is OIDC_AUDIENCE if that is a URL.
  const isMcp = request.path === MCP_PATH || audience?.pathname === MCP_PATH;
  const metadata = address && `${address}${METADATA_PATH}${isMcp ? MCP_PATH : ''}`;
  const parameters = [
    error.code === 'invalid_token' && 'error="invalid_token"',
    scope && `error="insufficient_scope", scope="${scope}"`,
    metadata && `resource_metadata="${metadata}"`,
  ];
  return `Bearer ${parameters.filter(Boolean).join(', ')}`.trimEnd();
}
