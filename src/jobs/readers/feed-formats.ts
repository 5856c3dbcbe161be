import { escapeText, escapeUTF8 } from 'entities';
import type { Transcript } from '../../domain/transcript.js';
import { nextTurn } from '../../domain/waiting.js';
import { clockTime, lineText } from '../../transcripts/formats/line-text.js';
import { paragraphsOf, secondUrl } from '../../transcripts/formats/markdown.js';

/** What a feed states beside its entries. */
export interface FeedHead {
  /** The same for as long as the address exists. */
  id: string;
  title: string;
  /** Its own address. */
  url: string;
  homeUrl: string;
  updatedAt: Date;
}

export interface FeedItem {
  /** The same in every feed, at any address of the service. */
  id: string;
  url: string;
  title: string;
  channel: string | null;
  publishedAt: Date;
  updatedAt: Date;
  html: string;
  transcripts: { url: string; language: string }[];
}

/** How a feed is written: its begin, each entry and its end. */
export interface FeedFormat {
  type: string;
  head: (feed: FeedHead) => string;
  item: (item: FeedItem, index: number) => string;
  end: string;
}

/** What is in no XML document, also escaped. The other such characters are control characters, which `lineText` removes. */
const NO_XML = /[\ufffe\uffff]/g;

/** Outside text within XML. */
const xml = (text: string): string => escapeUTF8(lineText(text).replace(NO_XML, ''));

const XML = '<?xml version="1.0" encoding="utf-8"?>\n';

const atom: FeedFormat = {
  type: 'application/atom+xml',
  head: ({ id, title, url, homeUrl, updatedAt }) => `${XML}<feed xmlns="http://www.w3.org/2005/Atom">
<id>${id}</id>
<title>${xml(title)}</title>
<updated>${updatedAt.toISOString()}</updated>
<link rel="self" type="application/atom+xml" href="${xml(url)}"/>
<link href="${xml(homeUrl)}"/>
`,
  item: ({ id, url, title, channel, publishedAt, updatedAt, html }) => `<entry>
<id>${xml(id)}</id>
<title>${xml(title)}</title>
<link href="${xml(url)}"/>
<published>${publishedAt.toISOString()}</published>
<updated>${updatedAt.toISOString()}</updated>
<author><name>${xml(channel ?? 'YouTube')}</name></author>
<content type="html">${xml(html)}</content>
</entry>
`,
  end: '</feed>\n',
};

const rss: FeedFormat = {
  type: 'application/rss+xml',
  head: ({ title, url, homeUrl, updatedAt }) => `${XML}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
  xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:podcast="https://podcastindex.org/namespace/1.0">
<channel>
<title>${xml(title)}</title>
<link>${xml(homeUrl)}</link>
<description>New uploads with their transcripts</description>
<lastBuildDate>${updatedAt.toUTCString()}</lastBuildDate>
<atom:link rel="self" type="application/rss+xml" href="${xml(url)}"/>
`,
  item: ({ id, url, title, channel, publishedAt, html, transcripts }) => `<item>
<title>${xml(title)}</title>
<link>${xml(url)}</link>
<guid isPermaLink="false">${xml(id)}</guid>
<pubDate>${publishedAt.toUTCString()}</pubDate>
<dc:creator>${xml(channel ?? 'YouTube')}</dc:creator>
<content:encoded>${xml(html)}</content:encoded>
${transcripts.map((one) => `<podcast:transcript url="${xml(one.url)}" type="text/vtt" language="${xml(one.language)}"/>\n`).join('')}</item>
`,
  end: '</channel>\n</rss>\n',
};

const json: FeedFormat = {
  type: 'application/feed+json',
  head: ({ title, url, homeUrl }) => {
    const version = 'https://jsonfeed.org/version/1.1';
    const fields = { version, title: lineText(title), home_page_url: homeUrl, feed_url: url };
    return `${JSON.stringify(fields).slice(0, -1)},"items":[`;
  },
  item: ({ id, url, title, channel, publishedAt, updatedAt, html }, index) =>
    (index === 0 ? '' : ',') +
    JSON.stringify({
      ...{ id, url, title: lineText(title), content_html: html },
      ...{ date_published: publishedAt, date_modified: updatedAt },
      ...(channel !== null && { authors: [{ name: lineText(channel) }] }),
    }),
  end: ']}\n',
};

/** By the ends of addresses. */
export const FEED_FORMATS = { atom, json, rss };

/** About an hour of speech. A feed has 50 texts at most, and readers refuse documents of many megabytes. */
export const TEXT_CHARACTERS_MAX = 60_000;

/** A transcript as paragraphs, each with a link to its second. A longer one ends with a link to where it goes on. */
export async function htmlOf(videoId: string, transcript: Transcript): Promise<string> {
  let html = '';
  let remaining = TEXT_CHARACTERS_MAX;
  for (const [language, segments] of transcript) {
    await nextTurn();
    if (transcript.size > 1) html += `<h3>${escapeText(lineText(language))}</h3>`;
    for (const { start, text } of paragraphsOf(segments)) {
      const link = `<a href="${secondUrl(videoId, start)}">`;
      remaining -= text.length;
      if (remaining < 0) return `${html}<p>${link}The text goes on at ${clockTime(start)}</a></p>`;
      html += `<p>${link}${clockTime(start)}</a> ${escapeText(text)}</p>`;
    }
  }
  return html;
}
