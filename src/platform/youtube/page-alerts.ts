import { asArray, at, textOf } from './json-reading.js';

/** Text in lower case, with straight apostrophes: the platform writes both kinds. */
export function plainWords(text: string): string {
  return text.replace(/[\u2018\u2019]/g, "'").toLowerCase();
}

/** True when a page carries an alert of type ERROR whose (plain) words match. Notices are of another type. */
export function hasErrorAlert(page: unknown, words: RegExp): boolean {
  return asArray(at(page, 'alerts')).some((alert) => {
    const renderer = at(alert, 'alertRenderer') ?? at(alert, 'alertWithButtonRenderer');
    const text = textOf(at(renderer, 'text'));
    return at(renderer, 'type') === 'ERROR' && text !== null && words.test(plainWords(text));
  });
}
