import { Logger, Module, type ExecutionContext } from '@nestjs/common';
import { NestMicroservice } from '@nestjs/microservices';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Observable } from 'rxjs';
import { AuthModule } from '../auth/auth.module.js';
import type { Environment } from '../config/environment.js';
import { withTimeout } from '../domain/waiting.js';
import { ShutdownState } from '../http/server/connections.js';
import { JobsModule } from '../jobs/jobs.module.js';
import { LibraryModule } from '../library/library.module.js';
import { TranscriptsModule } from '../transcripts/transcripts.module.js';
import { NatsTransport, TcpTransport } from './message-transports.js';
import { OpenMessages } from './open-messages.js';
import { MessagesController } from './messages.controller.js';

/** The operations as messages, in addition to HTTP. Imported only when MESSAGE_TRANSPORT is set. */
@Module({
  imports: [AuthModule, JobsModule, LibraryModule, TranscriptsModule],
  controllers: [MessagesController],
  providers: [OpenMessages],
})
export class MessagesModule {}

/**
 * Starts to receive messages and registers their end for the shutdown. The filters and pipes of the application are for
 * HTTP and not inherited: the pre-request hook does the same for messages.
 *
 * @throws Error when the address is in use or NATS is unavailable
 */
export async function startMessages(app: NestExpressApplication, environment: Environment): Promise<void> {
  const transport =
    environment.MESSAGE_TRANSPORT === 'nats' ? new NatsTransport(environment) : new TcpTransport(environment);
  const messages = app.get(OpenMessages);
  const microservice = app.connectMicroservice({ strategy: transport }, { deferInitialization: true });
  // The application has already called the initialization hooks.
  if (microservice instanceof NestMicroservice) microservice.setIsInitHookCalled(true);
  microservice.registerPreRequestHook((context: ExecutionContext, next: () => Observable<unknown>) =>
    messages.open(context, transport.replyChannel(context.switchToRpc().getContext()), next),
  );
  try {
    await Promise.all([microservice.listen(), transport.listening]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`Messages cannot be received at ${transport.url}: ${reason}. Change ${transport.settings}.`, {
      cause: error,
    });
  }
  app.get(ShutdownState).servers.push({
    ...(transport instanceof NatsTransport && { isConnected: () => transport.isConnected }),
    close: async (graceMs) => {
      messages.isRefusing = true;
      await withTimeout(
        transport.stopAccepting().then(() => messages.idle()),
        graceMs,
      );
      messages.disconnectAll();
      await transport.close();
    },
  });
  new Logger('Messages').log({ event: 'messages_listening', url: transport.url });
}
