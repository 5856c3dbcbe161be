import { Field, field, hasNoApiKey, type Stated } from '../../http/routes/field.js';

/** The caller's own words for whom a job or a subscription is. */
export type Labels = Readonly<Record<string, string>>;

const LABELS_MAX = 10;
const NAME = '[a-z0-9_.-]{1,40}';
/** What PostgreSQL cannot store, and no label needs. */
const VALUE = '[^\\p{Cc}\\p{Cs}]{1,100}';
const isName = (text: string): boolean => new RegExp(`^${NAME}$`).test(text);
const isValue = (value: unknown): boolean =>
  typeof value === 'string' && new RegExp(`^${VALUE}$`, 'u').test(value) && hasNoApiKey(value);

/** The field `labels`. @param stated other words */
export const Labels = (stated: Partial<Stated> = {}): PropertyDecorator =>
  field(
    {
      schema: {
        type: 'object',
        maxProperties: LABELS_MAX,
        additionalProperties: { type: 'string' },
      },
      fault: (value) => {
        const pairs =
          typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
        return pairs && pairs.length <= LABELS_MAX && pairs.every(([name, text]) => isName(name) && isValue(text))
          ? undefined
          : `must be an object of up to ${LABELS_MAX} texts of 1 to 100 characters, whose names have 1 to 40 of a-z, 0-9, "_", "." and "-"`;
      },
    },
    {
      description:
        `Up to ${LABELS_MAX} pairs of your own, such as \`{ "user": "42" }\`: a name of 1 to 40 characters of \`a-z0-9_.-\` and a ` +
        'text of 1 to 100 characters. Lists and the feed filter by them (`label=user:42`), and events have them.',
      storedSince: 2,
      brief: 'Pairs of your own.',
      hint: 'Your own pairs, such as `{ "user": "42" }`.',
      ...stated,
    },
  );

/** The field `label` of a list. */
export const Label = (): PropertyDecorator =>
  Field.text({
    rule: 'a name and a value, such as user:42',
    pattern: new RegExp(`^${NAME}:${VALUE}$`, 'u'),
    description: 'Only what has this label: its name and its value, such as `user:42`.',
    hint: 'Only of subscriptions with this label, such as `user:42`.',
  });

/** @param text which `Label` accepts */
export function labelOf(text: string): Labels {
  const end = text.indexOf(':');
  return { [text.slice(0, end)]: text.slice(end + 1) };
}
