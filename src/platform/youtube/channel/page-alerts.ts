import { asArray, at, textOf } from '../json-fields.js';

/** Text in lower case, with straight apostrophes: the platform writes both kinds. */
export function plainWords(text: string): string {
  return text.replace(/[\u2018\u2019]/g, "'").toLowerCase();
}

/** The alerts of a page in either of their forms; notices, such as one of hidden videos, are of type INFO. */
export function alertsOf(page: unknown): { type: unknown; text: string | null }[] {
  return asArray(at(page, 'alerts')).map((alert) => {
    const renderer = at(alert, 'alertRenderer') ?? at(alert, 'alertWithButtonRenderer');
    return { type: at(renderer, 'type'), text: textOf(at(renderer, 'text')) };
  });
}

/** True when a page carries an alert of type ERROR whose (plain) words match. */
export function hasErrorAlert(page: unknown, words: RegExp): boolean {
  return alertsOf(page).some(({ type, text }) => type === 'ERROR' && text !== null && words.test(plainWords(text)));
}
