import { Body, Controller, Delete, Get, HttpCode, HttpStatus, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { RequiresApiKey, RequiresFeature } from '../auth/auth.decorators.js';
import { invalidField } from '../domain/errors.js';
import { UnknownCursorError } from '../domain/page.js';
import { ApiErrors, ApiId, type ErrorExample } from '../http/errors/error-docs.js';
import { ApiIdempotencyKey, idempotencyKey } from '../http/routes/idempotency-key.js';
import { requestContext } from '../http/server/request-context.js';
import { ApiResult } from '../http/routes/response-docs.js';
import { PageQueryDto } from '../http/routes/validation.js';
import { CursorExpiredError, CursorUnknownError } from '../jobs/results/cursor.js';
import { AllowsHead } from '../http/routes/route.decorators.js';
import { ChangeWebhookDto, CreateWebhookDto, EVENT_CALLBACKS, ReplayDto } from './dto/webhooks-request.dto.js';
import {
  DELIVERIES,
  DeliveriesPageDto,
  DELIVERY,
  DeliveryDto,
  ROTATED_WEBHOOK,
  TEST_RESULT,
  TestResultDto,
  WEBHOOK,
  WEBHOOK_WITH_SECRET,
  WebhookDto,
  WEBHOOKS,
  WebhooksDto,
  WebhookWithSecretDto,
} from './dto/webhooks-response.dto.js';
import {
  DeliveryNotFoundError,
  DeliveryWaitingError,
  QueueFullError,
  REPEATED_HOURS,
  ROTATION_HOURS,
  TEST_EVENT,
  TooManyWebhooksError,
  UnreadableSecretError,
  WebhookNotFoundError,
  WEBHOOKS_MAX,
  WebhooksDisabledError,
  WebhookTurnedOffError,
} from './webhook.js';
import { PRIVATE_HOST } from './webhook-url.js';
import { WEBHOOK_ID, WebhooksService } from './webhooks.service.js';

const ApiWebhookId = (): MethodDecorator =>
  ApiId('The ID of the webhook (`whk_…`).', WEBHOOK.id, {
    title: 'The webhook does not exist, or belongs to another organization',
    error: new WebhookNotFoundError(),
  });

const ApiDeliveryId = (): MethodDecorator =>
  ApiId(
    'The ID of the delivery (`dlv_…`).',
    DELIVERY.id,
    { title: 'The webhook has no such delivery', error: new DeliveryNotFoundError() },
    'deliveryId',
  );

const DISABLED: ErrorExample = {
  title: 'The service has no key for the secrets of webhooks',
  error: new WebhooksDisabledError(),
};

const TURNED_OFF: ErrorExample = { title: 'The webhook is turned off', error: new WebhookTurnedOffError() };

const NOTHING_TO_CHANGE = invalidField('body', 'The body must contain at least one field to change.');

/** Any other text in the place of an ID is not logged. */
function organizationOf(request: Request, webhookId?: string): string {
  const { caller, log } = requestContext(request);
  if (webhookId !== undefined && WEBHOOK_ID.test(webhookId)) log['webhookId'] = webhookId;
  return caller.organization.id;
}

/** The webhooks of the caller's organization. After a change of the plan they can still be read and deleted. */
@ApiTags('webhooks')
@Controller('webhooks')
@AllowsHead()
export class WebhooksController {
  constructor(private readonly webhooks: WebhooksService) {}

  @Post()
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiOperation({
    summary: 'Create a webhook',
    description:
      'Events of archive jobs and subscriptions are sent to its URL, signed as Standard Webhooks defines it. The response contains the secret, ' +
      `which cannot be retrieved later, except by the same request with the same \`Idempotency-Key\` within ${REPEATED_HOURS} hours. An organization can have ${WEBHOOKS_MAX} webhooks. Requires the Pro plan.`,
    callbacks: EVENT_CALLBACKS,
  })
  @ApiIdempotencyKey(
    'webhook',
    `with the secret in force for ${REPEATED_HOURS} hours, then they are refused as long as the webhook exists`,
  )
  @ApiResult(
    HttpStatus.CREATED,
    WebhookWithSecretDto,
    'The new webhook, or the one that a request with the same key has created, including its secret.',
    WEBHOOK_WITH_SECRET,
  )
  @ApiErrors(
    invalidField('url', PRIVATE_HOST),
    { title: 'The organization has too many webhooks', error: new TooManyWebhooksError() },
    DISABLED,
  )
  createWebhook(@Body() body: CreateWebhookDto, @Req() request: Request): Promise<WebhookWithSecretDto> {
    const { actor } = requestContext(request);
    return this.webhooks.create(organizationOf(request), body, actor, idempotencyKey(request));
  }

  @Get()
  @RequiresApiKey()
  @ApiOperation({ summary: 'List the webhooks of the organization', description: 'Available on every plan.' })
  @ApiResult(HttpStatus.OK, WebhooksDto, 'The webhooks, oldest first, without their secrets.', WEBHOOKS)
  async listWebhooks(@Req() request: Request): Promise<WebhooksDto> {
    return { webhooks: await this.webhooks.list(organizationOf(request)) };
  }

  @Patch(':id')
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiWebhookId()
  @ApiOperation({
    summary: 'Change a webhook',
    description:
      'Changes where events are sent, which ones, and with which header; null removes. Deliveries that wait are sent to the new URL. ' +
      'With `url`, also the same one, a webhook that was turned off is turned on again, and its failures are forgotten.',
  })
  @ApiResult(HttpStatus.OK, WebhookDto, 'The changed webhook.', WEBHOOK)
  @ApiErrors(NOTHING_TO_CHANGE, DISABLED)
  changeWebhook(@Param('id') id: string, @Body() body: ChangeWebhookDto, @Req() request: Request): Promise<WebhookDto> {
    if (Object.values(body).every((value) => value === undefined)) throw NOTHING_TO_CHANGE;
    return this.webhooks.change(organizationOf(request, id), id, body, requestContext(request).actor);
  }

  @Delete(':id')
  @RequiresApiKey()
  @HttpCode(HttpStatus.NO_CONTENT)
  @ApiWebhookId()
  @ApiOperation({
    summary: 'Delete a webhook',
    description: 'Its deliveries are deleted too. One that is being sent may still arrive. Available on every plan.',
  })
  @ApiResponse({ status: HttpStatus.NO_CONTENT, description: 'The webhook is deleted.' })
  deleteWebhook(@Param('id') id: string, @Req() request: Request): Promise<void> {
    return this.webhooks.delete(organizationOf(request, id), id, requestContext(request).actor);
  }

  @Post(':id/rotate')
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiWebhookId()
  @ApiOperation({
    summary: 'Replace the secret of a webhook',
    description:
      `For ${ROTATION_HOURS} hours each delivery is signed with the new and the old secret. A secret that an earlier rotation ` +
      'replaced ends at once. The response contains the new secret, which cannot be retrieved later.',
  })
  @ApiResult(HttpStatus.OK, WebhookWithSecretDto, 'The webhook, including its new secret.', ROTATED_WEBHOOK)
  @ApiErrors(DISABLED)
  rotateWebhook(@Param('id') id: string, @Req() request: Request): Promise<WebhookWithSecretDto> {
    return this.webhooks.rotate(organizationOf(request, id), id, requestContext(request).actor);
  }

  @Post(':id/test')
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiWebhookId()
  @ApiOperation({
    summary: 'Send a test event to a webhook',
    description:
      `Sends an event \`${TEST_EVENT}\` now and reports the result. It is sent once, is no delivery of the list, and does not ` +
      'turn the webhook off or on.',
  })
  @ApiResult(HttpStatus.OK, TestResultDto, 'Whether the receiver accepted the event.', TEST_RESULT)
  @ApiErrors({ title: 'The secret of the webhook cannot be read', error: new UnreadableSecretError() })
  async testWebhook(@Param('id') id: string, @Req() request: Request): Promise<TestResultDto> {
    const { outcome, status, error, durationMs } = await this.webhooks.test(organizationOf(request, id), id);
    return { delivered: outcome === 'succeeded', responseStatus: status, error, durationMs };
  }

  @Post(':id/replay')
  @HttpCode(HttpStatus.ACCEPTED)
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiWebhookId()
  @ApiOperation({
    summary: 'Send the entries of the feed again',
    description:
      'Sends `upload.ready` and `upload.failed` again for the entries after a cursor of `GET /feed`, as new deliveries with the same ' +
      'event IDs, in the order of the feed. It goes on as they are delivered, and is over when `replaying` is false.',
  })
  @ApiResult(HttpStatus.ACCEPTED, WebhookDto, 'The webhook.', { ...WEBHOOK, replaying: true })
  @ApiErrors(
    { title: 'Entries after the cursor have expired', error: new CursorExpiredError('1200.Qm7xT2aa', 206) },
    { title: 'The service does not know the cursor', error: new CursorUnknownError('1200.Qm7xT2aa') },
    TURNED_OFF,
  )
  replayWebhook(@Param('id') id: string, @Body() { after }: ReplayDto, @Req() request: Request): Promise<WebhookDto> {
    return this.webhooks.replay(organizationOf(request, id), id, after);
  }

  @Post(':id/deliveries/:deliveryId/retry')
  @HttpCode(HttpStatus.ACCEPTED)
  @RequiresFeature('channel_archives', { limitsConcurrency: false })
  @ApiWebhookId()
  @ApiDeliveryId()
  @ApiOperation({
    summary: 'Send a delivery again',
    description: 'Sends a delivery that has succeeded or failed again, with all of its attempts and the same event ID.',
  })
  @ApiResult(HttpStatus.ACCEPTED, DeliveryDto, 'The delivery, which waits.', DELIVERY)
  @ApiErrors(
    TURNED_OFF,
    { title: 'The delivery is waiting already', error: new DeliveryWaitingError() },
    { title: 'Too many deliveries are waiting', error: new QueueFullError() },
  )
  retryWebhookDelivery(
    @Param('id') id: string,
    @Param('deliveryId') deliveryId: string,
    @Req() request: Request,
  ): Promise<DeliveryDto> {
    return this.webhooks.retry(organizationOf(request, id), id, deliveryId);
  }

  @Get(':id/deliveries')
  @RequiresApiKey()
  @ApiWebhookId()
  @ApiOperation({ summary: 'List the deliveries of a webhook', description: 'Available on every plan.' })
  @ApiResult(HttpStatus.OK, DeliveriesPageDto, 'A page of deliveries, newest first.', DELIVERIES)
  @ApiErrors(new UnknownCursorError('msg_x'))
  async listWebhookDeliveries(
    @Param('id') id: string,
    @Query() { limit, after }: PageQueryDto,
    @Req() request: Request,
  ): Promise<DeliveriesPageDto> {
    const { items, next } = await this.webhooks.deliveries(organizationOf(request, id), id, { limit, after });
    return { deliveries: items, next };
  }
}
