import type { VideoTranscript } from '@channel-transcripts/client';
import { lineText } from '../../transcripts/formats/line-text.js';

type Value = string | null | readonly string[];

/** YAML above a document of Markdown, which note programs and site generators read. @param channel the name of the video's channel */
export function frontMatter({ metadata, transcript }: VideoTranscript, channel: string | null): string {
  const { title, url, publishedAt, tags } = metadata;
  const [language = null] = Object.keys(transcript);
  // A tag with spaces is several ones, or none, in most of these programs.
  const words = (tags ?? []).map((tag) => lineText(tag).replace(/\s+/g, '-'));
  const fields: Record<string, Value> = { title, channel, url, published: publishedAt, language, tags: words };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${yamlOf(value)}\n`);
  return `---\n${lines.join('')}---\n\n`;
}

/** JSON is YAML, but for two characters, which YAML has as escapes only. */
function yamlOf(value: Value): string {
  const json = JSON.stringify(typeof value === 'string' ? lineText(value) : value);
  return json.replaceAll('\ufffe', '\\ufffe').replaceAll('\uffff', '\\uffff');
}
