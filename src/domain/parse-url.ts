/**
 * Parses a URL; undefined when it is not one. Not by `URL.canParse`: in Node.js 20 and 22, once V8 has optimized its caller,
 * it refuses hosts with characters such as `ü`.
 *
 * @param base for a relative URL
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
