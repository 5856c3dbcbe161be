import { applyDecorators } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { RequiresFeature } from '../auth/guarded.decorator.js';
import type { Feature } from '../domain/plan.js';

/** The pattern of a handler: the subject over NATS, the pattern over TCP. Also the name of its messages in logs and spans. */
export const MessageName = Reflector.createDecorator<string>();

/** Handles the messages of a pattern, behind the guards of a feature. */
export function OnMessage(pattern: string, feature: Feature): MethodDecorator {
  return applyDecorators(MessagePattern(pattern), MessageName(pattern), RequiresFeature(feature));
}
