import { Field, Fields, Picked, Restated } from '../../http/routes/field.js';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PageQueryDto } from '../../http/routes/validation.js';
import { ResultsQueryDto } from '../../jobs/dto/jobs-request.dto.js';
import { SubscriptionsQueryDto } from '../../jobs/dto/subscriptions-request.dto.js';
import { PublishedAfter } from '../../transcripts/dto/transcripts-query.dto.js';
import { QUERY_LENGTH_MAX } from '../search-query.js';

/** How results are ordered. */
export const SEARCH_SORTS = ['relevance', 'newest'] as const;
export type SearchSort = (typeof SEARCH_SORTS)[number];

/** Which part of a library is meant. */
class LibraryFilter extends Restated(Picked(SubscriptionsQueryDto, 'channel', 'label'), {
  channel: { description: 'Only videos of this channel: its ID or its handle.', hint: 'Only of this channel.' },
  label: {
    description:
      'Only what a job or a subscription with this label has kept: its name and its value, such as `user:42`.',
    hint: 'Only what was kept with this label, such as `user:42`.',
  },
}) {
  @Field.text({
    rule: 'a language code, such as en',
    pattern: /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$/,
    description: 'Only texts in this language. `en` finds `en-GB` too.',
    hint: 'Only in this language.',
  })
  language?: string;

  @PublishedAfter(
    'Only videos that were published then or later: a date, which begins at 0:00 UTC, or a time with its zone. By the exact ' +
      'time, else by the age that the list of YouTube stated.',
  )
  publishedAfter?: string;
}

/** The query of the list of what is kept. */
export class LibraryVideosQueryDto extends Fields(
  LibraryFilter,
  Restated(Picked(PageQueryDto, 'after'), {
    after: {
      description:
        'The `next` value of the previous page, or the `cursor` of a document. By default it begins with the newest video.',
    },
  }),
  Restated(Picked(ResultsQueryDto, 'limit', 'chunkSeconds', 'as'), {
    limit: {
      description:
        `The maximum number of videos to return: ${PAGE_SIZE_DEFAULT} by default, and values above ${PAGE_SIZE_MAX} are treated as ` +
        `${PAGE_SIZE_MAX}. With \`as=documents\` all by default.`,
    },
    chunkSeconds: {
      description: 'Only with `as=documents`: the length of a document in seconds, by default 60.',
    },
  }),
) {}

/** The query of a search. */
export class LibrarySearchQueryDto extends Fields(LibraryFilter, PageQueryDto) {
  @Field.text({
    required: true,
    rule: `a text of 1 to ${QUERY_LENGTH_MAX} characters`,
    min: 1,
    max: QUERY_LENGTH_MAX,
    description:
      'What to search: words, all of which a passage has, in any order; `"a phrase"`; `-without`; and `beg*` for words that begin so. ' +
      'Case and accents do not matter. In scripts without spaces between words, any substring of two characters or more is found.',
    hint: 'Words, all of which a passage has; "a phrase"; -without; beg* for a beginning.',
    example: '"rising tide" harbour',
  })
  q: string;

  @Field.word({
    words: SEARCH_SORTS,
    default: 'relevance',
    description: 'The order of the results. `relevance` ranks the newest 2,000 passages that match.',
    hint: '`relevance` or `newest` first.',
  })
  sort: SearchSort;
}

/** The query that deletes what is kept of a channel. */
export class LibraryChannelQueryDto extends Restated(Picked(SubscriptionsQueryDto, 'channel'), {
  channel: { required: true, description: 'The channel whose videos are deleted: its ID or its handle.' },
}) {
  declare channel: string;
}
