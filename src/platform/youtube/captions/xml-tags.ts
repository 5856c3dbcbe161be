import { UnreadableError } from '../response-parsing.js';

/** A tag of an XML text with its position; `other` is a comment, a declaration or a processing instruction. */
export interface XmlTag {
  kind: 'open' | 'close' | 'empty' | 'other';
  name: string;
  /** The text between the name and the end of the tag, not decoded. */
  attributes: string;
  start: number;
  end: number;
}

const NAME = /[A-Za-z_][\w:.-]*/y;

/**
 * Finds the next tag at or after a position; null when there is no further `<`. The caller slices the text between tags.
 * Reading a document takes time linear in its length, as each call continues at the end of the last tag.
 *
 * @throws UnreadableError for a tag without an end, as in a truncated body
 */
export function nextTag(xml: string, from: number): XmlTag | null {
  const start = xml.indexOf('<', from);
  if (start === -1) return null;
  if (xml.startsWith('<!--', start)) return other(start, endAfter(xml, '-->', start + 4));
  if (xml.startsWith('<?', start)) return other(start, endAfter(xml, '?>', start + 2));
  // Skipping it like the other declarations would lose text.
  if (xml.startsWith('<![CDATA[', start)) throw new UnreadableError('XML without CDATA sections');
  if (xml.startsWith('<!', start)) return other(start, endAfter(xml, '>', start + 2));

  const closing = xml.charCodeAt(start + 1) === SLASH;
  NAME.lastIndex = start + (closing ? 2 : 1);
  const name = NAME.exec(xml)?.[0];
  if (name === undefined) throw new UnreadableError('a tag name after <');
  const afterName = start + (closing ? 2 : 1) + name.length;
  const end = tagEnd(xml, afterName);
  const empty = xml.charCodeAt(end - 2) === SLASH && end - 2 >= afterName;
  const attributes = xml.slice(afterName, end - (empty ? 2 : 1));
  return { kind: closing ? 'close' : empty ? 'empty' : 'open', name, attributes, start, end };
}

/** The value of an attribute, not decoded, or null; `name` is a plain word. */
export function attributeOf(attributes: string, name: string): string | null {
  for (let found = attributes.indexOf(name); found !== -1; found = attributes.indexOf(name, found + 1)) {
    if (found > 0 && attributes.charCodeAt(found - 1) > SPACE) continue;
    ATTRIBUTE_VALUE.lastIndex = found + name.length;
    const value = ATTRIBUTE_VALUE.exec(attributes);
    if (value) return value[1] ?? value[2] ?? null;
  }
  return null;
}

const ATTRIBUTE_VALUE = /\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)')/y;
const SPACE = 0x20;
const SLASH = 0x2f;
const GREATER = 0x3e;
const QUOTE = 0x22;
const APOSTROPHE = 0x27;

function other(start: number, end: number): XmlTag {
  return { kind: 'other', name: '', attributes: '', start, end };
}

function endAfter(xml: string, mark: string, from: number): number {
  const found = xml.indexOf(mark, from);
  if (found === -1) throw new UnreadableError(`${mark} before the end of the body`);
  return found + mark.length;
}

/** The position after the `>` that ends a tag; one inside a quoted value does not. */
function tagEnd(xml: string, from: number): number {
  let quote = 0;
  for (let index = from; index < xml.length; index++) {
    const code = xml.charCodeAt(index);
    if (quote !== 0) {
      if (code === quote) quote = 0;
    } else if (code === GREATER) {
      return index + 1;
    } else if (code === QUOTE || code === APOSTROPHE) {
      quote = code;
    }
  }
  throw new UnreadableError('the end of a tag before the end of the body');
}
