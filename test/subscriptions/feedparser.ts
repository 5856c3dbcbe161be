import { spawnSync } from 'node:child_process';

/** Debian's python3 has its packages, and another one can precede it in the PATH. */
const PYTHON = ['python3', '/usr/bin/python3'].find(
  (program) => spawnSync(program, ['-c', 'import feedparser']).status === 0,
);

export const hasFeedparser = PYTHON !== undefined;

/** A feed as feedparser reads it. */
export interface ParsedFeed {
  bozo: boolean;
  version: string;
  feed: { id?: string; title: string; link: string; links: { rel: string; href: string }[] };
  entries: ParsedEntry[];
}

export interface ParsedEntry {
  id: string;
  title: string;
  link: string;
  author: string;
  published: string;
  content: { value: string }[];
  podcast_transcript?: { url: string; type: string; language: string };
}

const SCRIPT = `
import feedparser, json, sys
feed = feedparser.parse(sys.stdin.buffer.read(), response_headers={'content-type': sys.argv[1]}, sanitize_html=False)
print(json.dumps({'bozo': bool(feed.bozo), 'version': feed.version, 'feed': feed.feed, 'entries': feed.entries}, default=lambda x: None))`;

/** Reads a feed with feedparser. @param type the header `Content-Type` of its response */
export function parseFeed(body: string, type: string): ParsedFeed {
  const { stdout, stderr } = spawnSync(PYTHON ?? '', ['-c', SCRIPT, type], {
    input: body,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (stdout.length === 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString()) as ParsedFeed;
}
