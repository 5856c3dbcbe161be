/** Escapes a text for XML, apostrophes and quotes as the platform does it (`&#39;`, `&quot;`). */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Milliseconds as the seconds of an XML attribute: `0`, `1.54`, `5.7`. */
export function secondsOf(milliseconds: number): string {
  return String(milliseconds / 1_000);
}
