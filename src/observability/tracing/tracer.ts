export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A piece of work as a trace shows it. */
export interface Span {
  setAttributes(attributes: Attributes): void;
  /** @param type a stable word for what went wrong, such as the code of an error */
  fail(type: string): void;
}

/** The span of a call from outside, which whoever opened it ends. */
export interface ServerSpan extends Span {
  rename(name: string): void;
  end(): void;
}

/** Where spans go. */
export interface Tracer {
  /** Opens the span of a call that came from outside, as a child of the one that its headers name; what `work` starts belongs to it. */
  serve<T>(name: string, headers: unknown, attributes: Attributes, work: (span: ServerSpan) => T): T;
  /** Does a piece of work within a span, if it belongs to a call. `client` when another program does it. */
  inSpan<T>(
    kind: 'internal' | 'client',
    name: string,
    attributes: Attributes,
    work: (span: Span) => Promise<T>,
  ): Promise<T>;
  /** The trace of the work at hand; undefined outside of any. */
  traceId(): string | undefined;
}

/** Stands for a span where there is none. */
export const NO_SPAN: Span = { setAttributes: () => undefined, fail: () => undefined };

let active: Tracer | undefined;

/** Has all spans of this process go to a tracer, or nowhere. */
export function useTracer(tracer: Tracer | undefined): void {
  active = tracer;
}

/** Undefined while nobody asked for traces. */
export function activeTracer(): Tracer | undefined {
  return active;
}

/** Does a piece of work, which shows in the trace of its call if there is one. A rejection ends the span as failed. */
export function inSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return active ? active.inSpan('internal', name, attributes, work) : work(NO_SPAN);
}
