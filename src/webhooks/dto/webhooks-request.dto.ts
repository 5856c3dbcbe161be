import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { ArrayMaxSize, ArrayMinSize, IsArray, IsIn, IsString } from 'class-validator';
import { HasNoApiKey, Optional, PageLimit } from '../../http/validation.js';
import { URL_LENGTH_MAX } from '../webhook-url.js';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../webhook.js';
import { WEBHOOK } from './webhooks-response.dto.js';

const EVENTS_MESSAGE = `events must be a list of one or more of ${WEBHOOK_EVENTS.join(', ')}.`;
const PAGE_SIZE_DEFAULT = 25;
const PAGE_SIZE_MAX = 100;

@ApiSchema({ name: 'NewWebhookBody' })
export class CreateWebhookDto {
  @ApiProperty({
    description:
      'Where events are sent, by POST. An `https:` URL of a public host, with the port 80, 443 or one above 1023, and without ' +
      'user, password, fragment and API keys of this service.',
    format: 'uri',
    maxLength: URL_LENGTH_MAX,
    example: WEBHOOK.url,
  })
  @IsString({ message: 'url must be a string.' })
  @HasNoApiKey()
  url: string;

  @ApiPropertyOptional({
    description: 'The events to send. By default all of them, including those of later versions.',
    enum: WEBHOOK_EVENTS,
    isArray: true,
    minItems: 1,
    maxItems: WEBHOOK_EVENTS.length,
    example: WEBHOOK.events,
  })
  @Optional()
  @IsArray({ message: EVENTS_MESSAGE })
  @ArrayMinSize(1, { message: EVENTS_MESSAGE })
  @ArrayMaxSize(WEBHOOK_EVENTS.length, { message: EVENTS_MESSAGE })
  @IsIn(WEBHOOK_EVENTS, { each: true, message: EVENTS_MESSAGE })
  events?: WebhookEvent[];
}

export class DeliveriesQueryDto {
  @ApiPropertyOptional({
    type: 'integer',
    minimum: 1,
    default: PAGE_SIZE_DEFAULT,
    description: `The maximum number of deliveries to return. Values above ${PAGE_SIZE_MAX} are treated as ${PAGE_SIZE_MAX}.`,
    example: 20,
  })
  @PageLimit(PAGE_SIZE_MAX)
  limit: number = PAGE_SIZE_DEFAULT;

  @ApiPropertyOptional({
    type: 'string',
    description: 'The `next` value of the previous page. By default the first page is returned.',
  })
  @Optional()
  @IsString({ message: 'after must be the "next" value of a page, given once.' })
  after?: string;
}
