import { Injectable, RequestMethod, type INestApplicationContext, type Type } from '@nestjs/common';
import {
  GUARDS_METADATA,
  METHOD_METADATA,
  PARAMTYPES_METADATA,
  PATH_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { DiscoveryService, MetadataScanner, ModulesContainer, Reflector } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import type { Scope } from '../../domain/caller.js';
import { MethodNotAllowedError } from '../errors/http-errors.js';
import { rawUrlEncoder } from '../server/request-paths.js';
import { AllowsHead, AnyQuery, Audience, BodyBytesMax, Probe, Public, RawUrlId, Reads } from './route.decorators.js';

/** In the order in which `Allow` lists them. */
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'];

/** What can have metadata: a handler, a controller or a guard. */
export type Declared = Parameters<Reflector['get']>[1];

/** A route with what it declares; see `route.decorators.ts`. */
export interface Route {
  readonly method: string;
  /** As in the OpenAPI document, e.g. `/jobs/{id}`. */
  readonly path: string;
  readonly pattern: RegExp;
  /** From which its metadata is read: the handler, its controller and the guards of both. */
  readonly declaredBy: readonly Declared[];
  readonly scope: Scope;
  readonly allowsHead: boolean;
  readonly isProbe: boolean;
  readonly audience: 'public' | 'operators' | 'internal';
  /** Whether the handler validates the parameters of the query with a DTO, takes none, or ignores any. */
  readonly query: 'validated' | 'none' | 'any';
  readonly takesBody: boolean;
  readonly bodyBytesMax: number | undefined;
  readonly rawUrlId: 'channel' | 'page' | undefined;
}

/**
 * The HTTP routes of all controllers, read once at the start from their decorators. Middleware runs before Nest chooses the
 * route, so it looks its rules up here by the path.
 */
@Injectable()
export class Routes {
  readonly all: readonly Route[];
  private readonly byHandler: ReadonlyMap<Declared, Route>;
  private readonly audiences: ReadonlyMap<string, Route['audience']>;
  private readonly probes: readonly Route[];
  private readonly encoders: readonly ReturnType<typeof rawUrlEncoder>[];

  /** @throws Error for a route that has neither a guard nor `@Public` */
  constructor(discovery: DiscoveryService) {
    const controllers = discovery.getControllers().flatMap(({ metatype }) => (metatype ? [metatype as Type] : []));
    const routes = controllers.flatMap(routesOf);
    this.byHandler = new Map(routes);
    this.all = routes.map(([, route]) => route);
    const restricted = this.all.filter(({ audience }) => audience !== 'public');
    this.audiences = new Map(restricted.map(({ path, audience }) => [firstSegment(path), audience]));
    this.probes = this.all.filter(({ isProbe }) => isProbe);
    this.encoders = this.all.flatMap(({ path, rawUrlId }) => (rawUrlId ? [rawUrlEncoder(path, rawUrlId)] : []));
  }

  /** Those of an application in Nest's preview mode, in which no provider exists. */
  static preview(app: INestApplicationContext): Routes {
    return new Routes(new DiscoveryService(app.get(ModulesContainer)));
  }

  /** The route of the handler that Nest has chosen. */
  of(handler: Declared): Route {
    const route = this.byHandler.get(handler);
    if (!route) throw new Error(`${handler.name} is no handler of a controller.`);
    return route;
  }

  isProbe(path: string): boolean {
    return this.probes.some(({ pattern }) => pattern.test(path));
  }

  /** Who may reach a path from outside, also one without a route below the first segment of a route. */
  audience(path: string): Route['audience'] {
    return this.audiences.get(firstSegment(path)) ?? 'public';
  }

  get publicMethods(): string[] {
    return methodsOf(this.all.filter(({ audience }) => audience === 'public'));
  }

  /** The methods of the routes with this path. Express handles another method like an unknown path. */
  allowedMethods(path: string): string[] {
    const routes = this.all.filter(({ pattern }) => pattern.test(path));
    return [...methodsOf(routes), ...(routes.some(({ allowsHead }) => allowsHead) ? ['HEAD'] : [])];
  }

  /** Encodes a URL that is sent raw as an ID; other targets stay as they are. */
  readonly encodeRawUrl = (target: string): string => {
    for (const encode of this.encoders) {
      const encoded = encode(target);
      if (encoded !== undefined) return encoded;
    }
    return target;
  };

  /** Middleware: Express would handle HEAD as GET. */
  readonly refuseHead = (request: Request, _response: Response, next: NextFunction): void => {
    const methods = request.method === 'HEAD' ? this.allowedMethods(request.path) : [];
    const isRefused = methods.length > 0 && !methods.includes('HEAD');
    next(isRefused ? new MethodNotAllowedError(methods.join(', ')) : undefined);
  };
}

function methodsOf(routes: readonly Route[]): string[] {
  return METHODS.filter((name) => routes.some(({ method }) => method === name));
}

function firstSegment(path: string): string {
  return path.split('/', 2)[1] ?? '';
}

const reflector = new Reflector();

function routesOf(controller: Type): [Declared, Route][] {
  const prototype = controller.prototype as Record<string, Declared>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((name): [Declared, Route][] => {
    const handler = prototype[name];
    const method = handler && reflector.get<RequestMethod | undefined>(METHOD_METADATA, handler);
    if (handler === undefined || method === undefined) return [];
    return [[handler, routeOf(controller, name, handler, RequestMethod[method])]];
  });
}

function routeOf(controller: Type, name: string, handler: Declared, method: string): Route {
  const places = [handler, controller];
  const paths = [controller, handler].map((place) => reflector.get<string>(PATH_METADATA, place));
  const path = `/${paths
    .flatMap((part) => part.split('/'))
    .filter(Boolean)
    .join('/')}`;
  const guards = places.flatMap((place) => reflector.get<Type[] | undefined>(GUARDS_METADATA, place) ?? []);
  if (guards.length === 0 && reflector.getAllAndOverride(Public, places) === undefined)
    throw new Error(
      `${method} ${path} (${controller.name}.${name}) has no guard: add one, such as @RequiresApiKey(), or declare it @Public().`,
    );
  const anyQuery = reflector.getAllAndOverride(AnyQuery, places) === true;
  const bodyBytesMax = reflector.getAllAndOverride(BodyBytesMax, places);
  return {
    method,
    path: path.replace(/[:*](\w+)/g, '{$1}'),
    pattern: patternOf(path),
    declaredBy: [...places, ...guards],
    scope: requiredScope(places),
    allowsHead: method === 'GET' && reflector.getAllAndOverride(AllowsHead, places) === true,
    isProbe: reflector.getAllAndOverride(Probe, places) === true,
    audience: reflector.getAllAndOverride(Audience, places) ?? 'public',
    query: anyQuery ? 'any' : takes(RouteParamtypes.QUERY, controller, name) ? 'validated' : 'none',
    takesBody: bodyBytesMax !== undefined || takes(RouteParamtypes.BODY, controller, name),
    bodyBytesMax,
    rawUrlId: reflector.getAllAndOverride(RawUrlId, places),
  };
}

/** The scope that a handler of requests or messages requires. @param places the handler and its controller */
export function requiredScope(places: Parameters<Reflector['getAllAndOverride']>[1]): Scope {
  const isGet = reflector.getAllAndOverride(METHOD_METADATA, places) === RequestMethod.GET;
  return isGet || reflector.getAllAndOverride(Reads, places) === true ? 'read' : 'write';
}

/** The parameters of a handler by kind, as Nest's decorators note them; `data` names a single field. */
type Arguments = Record<string, { index: number; data?: unknown }>;

/** Whether a parameter of the handler is the whole query or body, as a class that says what is valid. */
function takes(kind: RouteParamtypes, controller: Type, name: string): boolean {
  const prototype = controller.prototype as object;
  const types = Reflect.getMetadata(PARAMTYPES_METADATA, prototype, name) as unknown[];
  const args = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) as Arguments | undefined;
  return Object.entries(args ?? {}).some(
    ([key, { index, data }]) => key.startsWith(`${kind}:`) && data === undefined && types[index] !== Object,
  );
}

/** `:id` is one segment of the path, `*id` also a URL with slashes. */
function patternOf(path: string): RegExp {
  return new RegExp(
    `^${path
      .replace(/[.+?()[\]{}|\\^$]/g, '\\$&')
      .replace(/:\w+/g, '[^/]+')
      .replace(/\*\w+/g, '.+')}$`,
  );
}
