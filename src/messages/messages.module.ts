import { Logger, Module, type ExecutionContext } from '@nestjs/common';
import { NestMicroservice } from '@nestjs/microservices';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Observable } from 'rxjs';
import { AuthModule } from '../auth/auth.module.js';
import type { Environment } from '../config/environment.js';
import { withTimeout } from '../domain/with-timeout.js';
import { ShutdownState } from '../http/shutdown-state.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { MessageCalls } from './message-calls.js';
import { MessagesController } from './messages.controller.js';
import { NatsMessages } from './nats-server.js';
import { TcpMessages } from './tcp-server.js';

/** The operation as a message, in addition to HTTP. Imported only when MESSAGE_TRANSPORT is set. */
@Module({
  imports: [AuthModule, TranscriptsModule],
  controllers: [MessagesController],
  providers: [MessageCalls],
})
export class MessagesModule {}

/**
 * Starts to receive messages and registers their end for the shutdown. The filters and pipes of the application are for
 * HTTP and not inherited: the pre-request hook does the same for messages.
 *
 * @throws Error when the address is in use or NATS is unavailable
 */
export async function startMessages(app: NestExpressApplication, environment: Environment): Promise<void> {
  const server =
    environment.MESSAGE_TRANSPORT === 'nats' ? new NatsMessages(environment) : new TcpMessages(environment);
  const calls = app.get(MessageCalls);
  const microservice = app.connectMicroservice({ strategy: server }, { deferInitialization: true });
  // The application has already called the initialization hooks.
  if (microservice instanceof NestMicroservice) microservice.setIsInitHookCalled(true);
  microservice.registerPreRequestHook((context: ExecutionContext, next: () => Observable<unknown>) =>
    calls.open(context, server.replyChannel(context.switchToRpc().getContext()), next),
  );
  await microservice.listen();
  app.get(ShutdownState).servers.push({
    close: async (graceMs) => {
      await server.stopAccepting();
      await withTimeout(calls.idle(), graceMs);
      calls.disconnectAll();
      await server.close();
    },
  });
  new Logger('Messages').log({ event: 'messages_listening', url: server.url });
}
