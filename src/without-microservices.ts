import { NestApplication } from '@nestjs/core';

/** What of Nest's application loads its package for messages: its factory asks for the first, its start for the second. */
const AT_CREATION = 'preloadLazyPackages';
const AT_START = 'loadMicroservicesModule';

const loadNothing = (): Promise<void> => Promise.resolve();

/**
 * Makes an application that does not load Nest's package for messages. Nest loads it wherever it is installed, used or
 * not. A version of Nest that loads it in another way would load it again, and nothing else would change.
 */
export async function withoutMicroservices<T>(create: () => Promise<T>): Promise<T> {
  const kept = Object.getOwnPropertyDescriptor(NestApplication.prototype, AT_CREATION);
  Reflect.set(NestApplication.prototype, AT_CREATION, function (this: object): Promise<void> {
    Reflect.set(this, AT_START, loadNothing);
    return loadNothing();
  });
  try {
    return await create();
  } finally {
    if (kept) Object.defineProperty(NestApplication.prototype, AT_CREATION, kept);
  }
}
