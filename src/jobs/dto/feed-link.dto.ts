import { ApiSchema } from '@nestjs/swagger';
import { z } from 'zod';
import { textOrNull } from '../../domain/schema-fields.js';
import { Field } from '../../http/routes/field.js';
import { FEED_FORMATS } from '../readers/feed-formats.js';
import { SUBSCRIPTION_EXAMPLE } from './subscription.dto.js';
import { JOB_VARIANTS } from '../job-variants.js';
import { Label } from './labels.js';

@ApiSchema({ name: 'NewFeedLinkBody' })
export class CreateFeedLinkDto {
  @Field.text({
    rule: 'the ID of a subscription (sub_…)',
    pattern: JOB_VARIANTS.subscription.idForm,
    description: 'Only the entries of this subscription. By default those of all.',
    example: SUBSCRIPTION_EXAMPLE.id,
  })
  subscription?: string;

  @Label()
  label?: string;
}

export const FeedLinkDto = z
  .object({
    id: z.string().describe('The ID of the link, for deleting it.'),
    subscription: textOrNull('Only the entries of this subscription. Null for those of all.'),
    label: textOrNull('Only entries with this label. Null for any.'),
    createdAt: z.date().describe('When the link was created.'),
  })
  .meta({ id: 'FeedLink' });
export type FeedLinkDto = z.infer<typeof FeedLinkDto>;

export const NewFeedLinkDto = z
  .object({
    id: z.string().describe('The ID of the link, for deleting it.'),
    url: z
      .string()
      .describe(
        'The address of the feed as Atom 1.0, for who may read it: it needs no key. It is returned only this once. With `.json` instead of ' +
          '`.atom` it is the JSON Feed 1.1, with `.rss` the RSS 2.0.',
      ),
  })
  .meta({ id: 'NewFeedLink' });
export type NewFeedLinkDto = z.infer<typeof NewFeedLinkDto>;

export const FeedLinksDto = z
  .object({ feedLinks: z.array(FeedLinkDto).describe('All feed links of the organization, oldest first.') })
  .meta({ id: 'FeedLinks' });
export type FeedLinksDto = z.infer<typeof FeedLinksDto>;

// The examples of the OpenAPI document.

export const FEED_LINK: FeedLinkDto = {
  id: 'fln_6f1d0c5e8b7a4d2f9c3e5a7b1d8f4c20',
  subscription: null,
  label: 'user:42',
  createdAt: new Date('2026-11-20T16:21:44Z'),
};

export const NEW_FEED_LINK: NewFeedLinkDto = {
  id: FEED_LINK.id,
  url: 'https://transcripts.example.com/feed/ctf_….atom',
};

export const ATOM_EXAMPLE = [
  FEED_FORMATS.atom.head({
    id: 'urn:uuid:6f1d0c5e-8b7a-4d2f-9c3e-5a7b1d8f4c20',
    title: 'Followed channels · user:42',
    url: NEW_FEED_LINK.url,
    homeUrl: 'https://www.youtube.com/',
    updatedAt: new Date('2026-11-20T16:22:03Z'),
  }),
  FEED_FORMATS.atom.item(
    {
      id: `https://www.youtube.com/watch?v=hl-dinghy__#${SUBSCRIPTION_EXAMPLE.id}`,
      url: 'https://www.youtube.com/watch?v=hl-dinghy__',
      title: 'We rebuilt a 1962 dinghy from the keel up',
      channel: 'Harbour Light Workshop',
      publishedAt: new Date('2026-11-20T15:58:00Z'),
      updatedAt: new Date('2026-11-20T16:22:03Z'),
      html: '<p><a href="https://youtu.be/hl-dinghy__?t=0">0:00</a> Good morning from the slip below the lighthouse.</p>',
      transcripts: [],
    },
    0,
  ),
  FEED_FORMATS.atom.end,
].join('');
